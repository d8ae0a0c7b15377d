// node --predictable write-code-cache.cjs DIST FLAGS_HASH: starts the daemon of that folder, lets it answer, and writes V8's code cache of
// what has run. --predictable makes it the same bytes every time, and is a flag itself, while V8 takes a cache only under the flags
// that it was made under: the hash of those that the daemon runs under is written in its place.
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");

/** In the header, see SerializedCodeData in V8's src/snapshot/code-serializer.h. */
const FLAGS_HASH_OFFSET = 12;

const [, , dist, flagsHash] = process.argv;
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
  const cache = script.createCachedData();
  cache.writeUInt32LE(Number(flagsHash), FLAGS_HASH_OFFSET);
  writeFileSync(join(dist, "daemon.cache"), cache);
  process.exit(0);
}
