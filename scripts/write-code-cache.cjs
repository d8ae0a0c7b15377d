// node write-code-cache.cjs DIST: starts the daemon of that folder, lets it answer, and writes V8's code cache of what has run.
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");

const dist = process.argv[2];
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
  await fetch(`${url}/picod.v1.ProcessService/Execute`, { method: "POST", headers, body: '{"command":"true"}' });
  writeFileSync(join(dist, "daemon.cache"), script.createCachedData());
  process.exit(0);
}
