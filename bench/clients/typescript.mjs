// The TypeScript client as a client of the benchmark: takes and answers jobs as `client serve` does, one after the other.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";

const [address, library] = process.argv.slice(2);
const { createClient } = await import(library);
const client = createClient({ url: `http://${address}`, token: process.env.PICOD_ACCESS_TOKEN });

for await (const line of createInterface(process.stdin)) {
  const job = JSON.parse(line);
  const result = await measure(job.count, operation(job)).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
client.close();

function operation({ kind, argv, path, localPath, size = 0 }) {
  const text = "x".repeat(Math.min(size, 1024 * 1024));
  const operations = {
    async exec() {
      const { exitCode, stdout } = await client.run(argv);
      assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: "" });
    },
    write: (index) => client.writeText(`${path}/${index}`, text),
    read: async (index) => assert.equal(await client.readText(`${path}/${index}`), text),
    upload: () => client.upload(localPath, path),
    async download() {
      await client.download(path, localPath);
      assert.equal((await stat(localPath)).size, size);
    },
  };
  return operations[kind];
}

async function measure(count, run) {
  const latencies = [];
  const start = performance.now();
  for (let index = 0; index < count; index++) {
    const begun = performance.now();
    await run(index);
    latencies.push(performance.now() - begun);
  }
  const seconds = (performance.now() - start) / 1000;
  latencies.sort((a, b) => a - b);
  const [p50Ms, p99Ms] = [50, 99].map((percent) => latencies[Math.min(count - 1, Math.floor((count * percent) / 100))]);
  return { minMs: latencies[0], p50Ms, p99Ms, maxMs: latencies.at(-1), count, seconds };
}
