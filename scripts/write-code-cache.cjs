// node write-code-cache.cjs DIST: starts the daemon of that folder, puts it to use, and writes V8's code cache of what has run. The use
// reaches both ways wherever it is a matter of time which one is taken, so that it is the same functions every time.
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");

/** Of the daemon's timers that fire without a cause all have by then. */
const TIMERS_MS = 1_500;
/** An output that ends with the command, before it and after it. */
const COMMANDS = ["true", "exec >&- 2>&-; sleep 0.2", "sleep 0.2 &", "echo out; echo err >&2"];

const [, , dist] = process.argv;
process.env.PICOD_ACCESS_TOKEN = "for-the-code-cache";
process.argv = [process.execPath, join(dist, "picod.cjs"), "--host", "127.0.0.1", "--port", "0"];
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (line, ...rest) => {
  if (line.includes('"server listening"')) void finish(JSON.parse(line).port);
  return write(line, ...rest);
};
const script = require(process.argv[1]);

async function finish(port) {
  const headers = { authorization: "Bearer for-the-code-cache", "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}`;
  await fetch(`${url}/healthz`);
  for (const command of COMMANDS) {
    const body = JSON.stringify({ command });
    await (await fetch(`${url}/picod.v1.ProcessService/Execute`, { method: "POST", headers, body })).text();
  }
  await sleep(TIMERS_MS);
  writeFileSync(join(dist, "daemon.cache"), script.createCachedData());
  process.exit(0);
}
