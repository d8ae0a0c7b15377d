import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { Container } from "./container.js";
import { read, write } from "./files.js";
import { artefact, packageFolder, packagePath } from "./packages.js";
import { debianRoot, emptyRoot, muslRoot, type Root } from "./roots.js";
import { runChrooted } from "./run-chrooted.js";

const TOKEN_IN_ENVIRONMENT = ["--env", `PICOD_ACCESS_TOKEN=${TOKEN}`];
/** In every root. */
const MOUNTED = ["--volume", `${packageFolder(process.arch)}:/opt/picod:ro`, "--volume", `${artefact(".")}:/opt/packages:ro`];
const SINGLE_FILE = packagePath(process.arch).replace(artefact("."), "/opt/packages");
/** podman gives up its other limits when one is given. */
const PROCESSES = ["--ulimit", "nproc=2048:2048"];

const ROOTS: readonly [string, () => Root, shell: boolean][] = [
  ["an empty root", emptyRoot, false],
  ["musl and busybox", muslRoot, true],
  ["a Debian", debianRoot, true],
  ["a Debian without libstdc++ and libgcc", () => debianRoot({ without: ["/usr/lib/*/libstdc++*", "/lib/*/libgcc_s*"] }), true],
];

const CONDITIONS: readonly [string, options: readonly string[]][] = [
  ["with a read-only root and no /tmp", ["--read-only", "--read-only-tmpfs=false"]],
  ["with a /tmp that is noexec", ["--tmpfs", "/tmp:noexec"]],
  ["as a user without a name", ["--user", "4242:4242", "--passwd=false"]],
  ["with 64 open files", ["--ulimit", "nofile=64:64", ...PROCESSES]],
  ["with 32 processes", ["--pids-limit", "32"]],
  ["with 96 MiB of memory", ["--memory", "96m"]],
  ["without capabilities", ["--cap-drop", "all", "--security-opt", "no-new-privileges"]],
  [
    "with what an image sets for its own programs",
    [
      ...["LD_PRELOAD=/no.so", "LD_LIBRARY_PATH=/no", "NODE_OPTIONS=--require=/no.js", "OPENSSL_CONF=/no"].flatMap((v) => [
        "--env",
        v,
      ]),
    ],
  ],
];

describe.each([
  ["folder", "/opt/picod/picod"],
  ["single file", SINGLE_FILE],
])("the package as a %s", (_form, program) => {
  /** A real command, and a file there and back. */
  async function works(rootfs: string, options: readonly string[], shell: boolean): Promise<void> {
    const all = [...TOKEN_IN_ENVIRONMENT, ...MOUNTED, ...options];
    await using container = await Container.start({ rootfs, options: all, args: [program] });
    await using clients = connectTo(container.url);
    expect(await clients.process.execute({ argv: [program, "--version"] })).toMatchObject({ stdout: "0.1.0\n", exitCode: 0 });
    if (shell)
      expect(await clients.process.execute({ command: "echo $((6*7)); exit 3" })).toMatchObject({ stdout: "42\n", exitCode: 3 });
    await write(clients, "/dev/shm/a/b", "there and back");
    expect(await read(clients, "/dev/shm/a/b")).toBe("there and back");
    const found: string[] = [];
    for await (const { event } of clients.filesystem.search({ path: "/dev/shm/a", pattern: "back" }))
      found.push(event.case ?? "");
    expect(found).toContain("match");
    expect(await container.stop()).toBe(0);
  }

  it.each(ROOTS)("works in %s", async (_root, make, shell) => {
    using root = make();
    await works(root.path, [], shell);
  });

  describe("in an empty root", () => {
    let root: Root;
    beforeAll(() => {
      root = emptyRoot();
    });
    afterAll(() => root[Symbol.dispose]());

    it.each(CONDITIONS)("works %s", (_condition, options) => works(root.path, options, false));

    it("says that /proc is missing, and ends with 2", () => {
      const { exitCode, stderr } = runChrooted(root.path, program);
      expect(stderr).toMatch(/^picod: cannot start: \/proc: not mounted.*mount -t proc proc \/proc\n$/);
      expect(exitCode).toBe(2);
    });
  });
});
