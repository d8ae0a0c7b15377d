// Runs the daemon with V8's code cache: compiling it costs more than all else that it does at start-up. A cache that is missing,
// or was made by another Node or under other flags, is not used.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { Script } = require("node:vm");

const filename = join(__dirname, "daemon.cjs");
// Pure ASCII, as esbuild writes it: one byte a character is all that V8 has to keep.
const source = `(function (exports, require, module, __filename, __dirname) { ${readFileSync(filename, "latin1")}\n})`;
const script = new Script(source, { filename, cachedData: readCodeCache() });
script.runInThisContext()(exports, require, module, filename, __dirname);
module.exports = script;

function readCodeCache() {
  try {
    return readFileSync(join(__dirname, "daemon.cache"));
  } catch {
    return undefined;
  }
}
