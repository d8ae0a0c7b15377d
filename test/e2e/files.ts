import type { Clients } from "../helpers/clients.js";

export async function write(clients: Clients, path: string, content: string) {
  async function* upload() {
    yield { request: { case: "metadata" as const, value: { path } } };
    yield { request: { case: "chunk" as const, value: Buffer.from(content) } };
  }
  return clients.filesystem.writeFile(upload());
}

export async function read(clients: Clients, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { response } of clients.filesystem.readFile({ path })) {
    if (response.case === "chunk") chunks.push(response.value);
  }
  return Buffer.concat(chunks).toString();
}
