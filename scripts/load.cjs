// Runs the daemon with V8's code cache: compiling it costs more than all else that it does at start-up. A cache that is missing,
// or was made by another Node or under other flags, is not used.
//
// In a folder the daemon's files lie beside this one. In a package's single file they are parts of the program, and PICOD_PARTS,
// where each begins and how long it is, is filled in by packaging/single-file.mjs.
const { closeSync, existsSync, openSync, readFileSync, readSync } = require("node:fs");
const { join, dirname } = require("node:path");
const { Script } = require("node:vm");

/** What hardly any daemon loads; the build fills it in. */
const BUNDLES = LOADED_BUNDLES;
const loaded = new Map();
const parts = typeof PICOD_PARTS === "undefined" ? undefined : PICOD_PARTS;
const folder = parts === undefined ? __dirname : dirname(process.execPath);
const program = parts === undefined ? undefined : openSync("/proc/self/exe");
const koffi = takeNativeLibrary() ?? requireNativeLibrary();
const main = { exports: {} };
module.exports = run("daemon.cjs", main, readPartIfAny("daemon.cache"));

/** Returns the compiled script. */
function run(name, target, cachedData) {
  // Pure ASCII, as esbuild writes it: one byte a character is all that V8 has to keep.
  const source = readPart(name).toString("latin1");
  const wrapper = `(function (exports, require, module, __filename, __dirname, readPart) { ${source}\n})`;
  const script = new Script(wrapper, { filename: name, cachedData });
  script.runInThisContext()(target.exports, requireFromProgram, target, join(folder, name), folder, readPart);
  return script;
}

function requireFromProgram(name) {
  if (name === "koffi") return koffi;
  if (!BUNDLES.includes(name)) return require(name);
  const target = loaded.get(name) ?? { exports: {} };
  if (!loaded.has(name)) run(`${name}.cjs`, target);
  loaded.set(name, target);
  return target.exports;
}

function readPart(name) {
  if (parts === undefined) return readFileSync(join(folder, name));
  const [offset, size] = parts[name];
  const content = Buffer.allocUnsafeSlow(size);
  readSync(program, content, 0, size, offset);
  return content;
}

function readPartIfAny(name) {
  try {
    return readPart(name);
  } catch {
    return undefined;
  }
}

/** Of its own package where that lies beside: the module around it makes Node load worker threads, a diff and more. */
function requireNativeLibrary() {
  const path = join(folder, `node_modules/@koromix/koffi-linux-${process.arch}/index.js`);
  return require(existsSync(path) ? path : "koffi");
}

/** The last of the libraries that the launcher of a package has opened; all others are loaded by now. */
function takeNativeLibrary() {
  const { PICOD_LIBRARIES } = process.env;
  if (PICOD_LIBRARIES === undefined) return undefined;
  delete process.env.PICOD_LIBRARIES;
  delete process.env.LD_PRELOAD;
  const descriptors = PICOD_LIBRARIES.split(",").map(Number);
  const target = { exports: {} };
  // Threads load it again.
  readPart.nativeLibrary = `/proc/self/fd/${descriptors.pop()}`;
  process.dlopen(target, readPart.nativeLibrary);
  for (const fd of descriptors) closeSync(fd);
  return target.exports;
}
