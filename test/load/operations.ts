import { Code, ConnectError } from "@connectrpc/connect";
import type { PicodClient } from "../../src/client/index.js";
import type { Clients } from "../helpers/clients.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { createJob, type Job } from "../soak/jobs.js";
import { runJob } from "../soak/run-job.js";
import { contentOf, nameOf, sha256 } from "./content.js";
import type { Kind, Message, Orders } from "./messages.js";

export interface Client {
  readonly orders: Orders;
  readonly name: string;
  readonly random: (below: number) => number;
  /** One protocol of all. */
  readonly clients: Clients;
  /** What agents use: goes on after a broken connection. */
  readonly picod: PicodClient;
  readonly say: (message: Message) => void;
  /** Names of files that the daemon has. */
  readonly stored: string[];
  operations: number;
}

const FILES_OF_CLIENT = 8;
const CHUNK_BYTES = 64 * 1024;

/** Each resolves with the bytes that it has moved. */
export const OPERATIONS: Readonly<Record<Kind, (client: Client) => Promise<number>>> = { exec, upload, download, attach };

async function exec({ clients, random, say }: Client): Promise<number> {
  const bytes = random(100_000);
  const exitCode = random(4);
  const command = `head -c ${bytes} /dev/zero | tr '\\0' x; echo error >&2; exit ${exitCode}`;
  const result = await clients.process.execute({ command, timeout: 0 });
  const isRight = result.stdout === "x".repeat(bytes) && result.stderr === "error\n" && result.exitCode === exitCode;
  if (!isRight) say({ type: "wrong", what: `${command}: ${result.exitCode}, ${result.stdout.length} bytes, ${result.stderr}` });
  return bytes;
}

async function upload(client: Client): Promise<number> {
  const { orders, random, clients, say, stored } = client;
  const name = nameOf(random(2) === 0 ? random(2_000) : random(orders.maxFileBytes), `${client.name}-${client.operations}`);
  const content = contentOf(name);
  const path = `${orders.directory}/${name}`;
  if (random(2) === 0) {
    await clients.filesystem.writeFile(messages({ path, sha256: sha256(content) }, content));
  } else {
    await inParts(client, name, path, content).catch(async (error: unknown) => {
      // It would wait for more until it expires.
      await clients.filesystem.abortUpload({ uploadId: name }).catch(() => undefined);
      throw error;
    });
  }
  say({ type: "stored", name });
  stored.push(name);
  if (stored.length <= FILES_OF_CLIENT) return content.length;
  const [oldest = ""] = stored.splice(0, 1);
  say({ type: "removing", name: oldest });
  await clients.filesystem.remove({ path: `${orders.directory}/${oldest}` });
  return content.length;
}

async function inParts({ clients: { filesystem } }: Client, uploadId: string, path: string, content: Buffer): Promise<void> {
  const half = Math.floor(content.length / 2);
  await filesystem.writeFile(messages({ path, uploadId, offset: 0n }, content.subarray(0, half)));
  await filesystem.writeFile(messages({ path, uploadId, offset: BigInt(half) }, content.subarray(half)));
  await filesystem.commitUpload({ uploadId, size: BigInt(content.length), sha256: sha256(content) });
}

async function* messages(metadata: { path: string; sha256?: string; uploadId?: string; offset?: bigint }, content: Buffer) {
  yield { request: { case: "metadata" as const, value: metadata } };
  for (let at = 0; at < content.length; at += CHUNK_BYTES) {
    yield { request: { case: "chunk" as const, value: new Uint8Array(content.subarray(at, at + CHUNK_BYTES)) } };
  }
}

async function download(client: Client): Promise<number> {
  const { orders, random, stored, say } = client;
  const name = stored[random(stored.length)];
  if (name === undefined) return upload(client);
  const content = random(2) === 0 ? await overRpc(client, name) : await overHttp(orders, name);
  if (!content.equals(contentOf(name))) say({ type: "wrong", what: `${name} came as ${content.length} other bytes` });
  return content.length;
}

async function overRpc({ clients, orders }: Client, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const { response } of clients.filesystem.readFile({ path: `${orders.directory}/${name}` })) {
    if (response.case === "chunk") chunks.push(response.value);
  }
  return Buffer.concat(chunks);
}

async function overHttp({ url, directory }: Orders, name: string): Promise<Buffer> {
  const response = await fetch(`${url}/v1/files/${directory}/${name}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const content = Buffer.from(await response.arrayBuffer());
  if (!response.ok)
    throw new ConnectError(`${content}`, `${content}`.includes("RESOURCE_EXHAUSTED") ? Code.ResourceExhausted : Code.Unknown);
  return content;
}

/** A process that outlives its connection, followed by somebody who goes away and comes back. */
async function attach({ picod, name, operations, random, say }: Client): Promise<number> {
  let job: Job;
  do job = createJob(`${name}-${operations}`, random);
  while (job.reason !== "EXITED");
  const result = await runJob(picod, job, () => random(20) === 0);
  const isRight = result.trimmed === 0 && result.reason === job.reason && result.sha256 === job.sha256;
  if (!isRight) say({ type: "wrong", what: `${JSON.stringify(job).slice(0, 500)} → ${JSON.stringify(result)}` });
  await picod.process.deleteProcess({ process: { selector: { case: "id", value: job.id } } });
  return result.bytes;
}
