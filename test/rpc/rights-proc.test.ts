import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { openDescriptors } from "../helpers/open-descriptors.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

async function readAsNobody({ filesystem }: Clients, path: string): Promise<string> {
  let content = "";
  try {
    for await (const { response } of filesystem.readFile({ path, user: "nobody" }))
      if (response.case === "chunk") content += Buffer.from(response.value).toString("latin1");
    return `read ${content}`;
  } catch (error) {
    return `${error}`;
  }
}

const REFUSED = /permission denied|too many symbolic links/;

it("descriptors of the daemon lead nobody to where another user's operations are", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  const open = `${directory.path}/closed/open`;
  mkdirSync(open, { recursive: true });
  writeFileSync(`${open}/file`, "secret");
  chmodSync(`${directory.path}/closed`, 0o700);
  const end = Promise.withResolvers<void>();
  async function* held() {
    yield { request: { case: "metadata" as const, value: { path: `${open}/new` } } };
    await end.promise;
  }
  const writing = clients.filesystem.writeFile(held());
  const fds = () => openDescriptors(daemon.pid).filter(({ target }) => target === open);
  await eventually("the directory is open", () => fds().length > 0);
  const paths = fds().flatMap(({ fd }) => [
    ...["self", "thread-self", `${daemon.pid}`, `self/task/${daemon.pid}`].map((self) => `/proc/${self}/fd/${fd}/file`),
    `/dev/fd/${fd}/file`,
  ]);
  for (const path of paths) expect(await readAsNobody(clients, path), path).toMatch(REFUSED);
  end.resolve();
  await writing;
});

it("the capabilities of root show others nothing of its processes", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  try {
    for (const name of ["maps", "cwd/proc/version", "root/proc/version"])
      expect(await readAsNobody(clients, `/proc/${child.pid}/${name}`), name).toMatch(REFUSED);
  } finally {
    child.kill();
  }
});
