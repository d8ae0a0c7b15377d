import { expect } from "vitest";
import type { Clients } from "../../helpers/clients.js";
import type { Daemon } from "../../helpers/start-daemon.js";
import { askAs } from "../../helpers/with-token.js";

/** What is written. */
export const NEWS = "written by somebody confined";

/** Of whatever kind: their types tell nothing that the daemon does not. */
export async function* messages(...all: readonly object[]) {
  yield* all as never[];
}

export async function all(events: AsyncIterable<unknown>): Promise<unknown[]> {
  const told: unknown[] = [];
  for await (const event of events) told.push(event);
  return told;
}

/** Calls that each take a path, and do something with it or to it. @param inside where the caller may do everything. */
export function fileRpcs({ filesystem }: Clients, inside: string): Record<string, (path: string) => Promise<unknown>> {
  const metadata = (path: string) => ({ request: { case: "metadata" as const, value: { path } } });
  const chunk = { request: { case: "chunk" as const, value: new TextEncoder().encode(NEWS) } };
  return {
    stat: (path) => filesystem.stat({ path }),
    "stat, links followed": (path) => filesystem.stat({ path, followSymlinks: true }),
    readFile: (path) => all(filesystem.readFile({ path })),
    writeFile: (path) => filesystem.writeFile(messages(metadata(path), chunk)),
    listDirectory: (path) => all(filesystem.listDirectory({ path })),
    makeDirectory: (path) => filesystem.makeDirectory({ path: `${path}/x/y` }),
    "move from": (source) => filesystem.move({ source, destination: `${inside}/moved` }),
    "move to": (destination) => filesystem.move({ source: `${inside}/file`, destination }),
    "copy from": (source) => filesystem.copy({ source, destination: `${inside}/copied` }),
    "copy to": (destination) => filesystem.copy({ source: `${inside}/file`, destination }),
    remove: (path) => filesystem.remove({ path, recursive: true }),
    setAttributes: (path) => filesystem.setAttributes({ path, mode: 0o777 }),
    find: (path) => all(filesystem.find({ path })),
    search: (path) => all(filesystem.search({ path, pattern: "not" })),
    readArchive: (path) => all(filesystem.readArchive({ path })),
    writeArchive: (path) => filesystem.writeArchive(messages({ request: { case: "metadata" as const, value: { path } } })),
    watchDirectory: (path) => all(filesystem.watchDirectory({ path })),
    getChanges: (path) => filesystem.getChanges({ path }),
    createSignedUrl: (path) => filesystem.createSignedUrl({ path }).then(({ url }) => expect.fail(url)),
  };
}

/** The same by plain HTTP and E2B's contract. */
export function fileRequests(
  daemon: Daemon,
  token: string,
): Record<string, (path: string) => Promise<{ status: number; body: string }>> {
  const files = (path: string) => `/v1/files/${encodeURIComponent(path).replaceAll(".", "%2E")}`;
  const archive = (path: string) => files(path).replace("files", "archive");
  const query = (path: string) => new URLSearchParams({ path });
  const octets = { "content-type": "application/octet-stream" };
  const rpc = (name: string) => (path: string) => askAs(daemon, token, `/filesystem.Filesystem/${name}`, { path });
  return {
    "GET /v1/files": (path) => askAs(daemon, token, files(path), undefined, "GET"),
    "PUT /v1/files": (path) => askAs(daemon, token, files(path), NEWS, "PUT", octets),
    "DELETE /v1/files": (path) => askAs(daemon, token, `${files(path)}?recursive=true`, undefined, "DELETE"),
    "GET /v1/archive": (path) => askAs(daemon, token, archive(path), undefined, "GET"),
    "PUT /v1/archive": (path) => askAs(daemon, token, archive(path), Buffer.alloc(1024).toString(), "PUT"),
    "GET /files": (path) => askAs(daemon, token, `/files?${query(path)}`, undefined, "GET"),
    "POST /files": (path) => askAs(daemon, token, `/files?${query(path)}`, NEWS, "POST", octets),
    "POST /files/compose": (path) => askAs(daemon, token, "/files/compose", { source_paths: [path], destination: `${path}2` }),
    "E2B's Stat": rpc("Stat"),
    "E2B's ListDir": rpc("ListDir"),
    "E2B's MakeDir": (path) => rpc("MakeDir")(`${path}/x`),
    "E2B's Remove": rpc("Remove"),
    "E2B's CreateWatcher": rpc("CreateWatcher"),
    "E2B's Move": (source) => askAs(daemon, token, "/filesystem.Filesystem/Move", { source, destination: `${source}2` }),
  };
}
