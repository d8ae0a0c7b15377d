import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/** A kernel, or a container engine, that has no seccomp(2): the call itself is filtered out. */
const WITHOUT_SECCOMP = [
  "python3",
  "-c",
  `import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None)
number = 317 if platform.machine() == "x86_64" else 277
code = b"".join(struct.pack("HBBI", *each) for each in ((0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(kept := ctypes.create_string_buffer(code))))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execvp(sys.argv[1], sys.argv[1:])`,
];

interface Granted {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  readonly commands?: readonly string[];
  readonly domains?: readonly string[];
}

/** A policy for whoever has the daemon's own token. */
function policyFor({ read = [], write = [], commands, domains = ["*"] }: Granted): string {
  return `daemon_token = "c"
[capabilities.c.permissions.filesystem]
read_paths = ${JSON.stringify(read)}
write_paths = ${JSON.stringify(write)}
[capabilities.c.permissions.shell]
${commands === undefined ? "" : `allowed_commands = ${JSON.stringify(commands)}`}
[capabilities.c.permissions.network]
allowed_domains = ${JSON.stringify(domains)}
`;
}

describe("a policy that cannot be enforced", () => {
  it.each<[string, Granted, RegExp, (readonly string[])?]>([
    [
      "globs that the kernel does not know",
      { read: ["/srv/*/public/**"] },
      /capability c: .*"\/srv\/\*\/public\/\*\*".*DIR\/\*\* and exact paths alone/,
    ],
    [
      "programs that it may change",
      { write: ["/usr/**"], commands: ["git"] },
      /capability c: .*may be executed, and write_paths/,
    ],
    [
      "a program that is reached over a link that it may change",
      { write: ["/etc/alternatives/**"], commands: ["awk"] },
      /capability c: .*\/etc\/alternatives\/awk.*may be executed, and write_paths/,
    ],
    [
      "a directory that commands are granted, in whose place it may put a link",
      { write: ["/usr/local/**"] },
      /capability c: .*\/usr\/local\/\w+.*are granted \/usr\/local\/\w+, and write_paths let something else be put in its place/,
    ],
    [
      "such a directory itself",
      { write: ["/usr/local/include"], commands: ["ls"] },
      /capability c: .*\/usr\/local\/include.*in its place/,
    ],
    ["such a file", { read: ["/**"], write: ["/dev/null"] }, /capability c: .*\/dev\/null.*in its place/],
    ["the whole tree for writing alone", { write: ["/**"] }, /capability c: .*in its place/],
    [
      "a network of its own without the rights for it",
      { domains: ["pypi.org"] },
      /capability c: .*unshare\(CLONE_NEWNET\).*CAP_SYS_ADMIN/,
      AS_NOBODY,
    ],
    ["no network without the rights for it", { domains: [] }, /capability c: .*CAP_SYS_ADMIN/, AS_NOBODY],
    [
      "a kernel without seccomp",
      {},
      /capability c: its commands cannot be confined: seccomp.*ENOSYS|seccomp.*not implemented/,
      WITHOUT_SECCOMP,
    ],
    ["hosts that are none", { domains: ["https://pypi.org/"] }, /https:\/\/pypi\.org\//],
  ])("is refused at start: %s", async (_title, granted, why, wrapper = []) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/policy.toml`;
    writeFileSync(path, policyFor(granted));
    const daemon = new Daemon({ args: ["--policy", path], wrapper });
    expect(await daemon.exited).toBe(2);
    expect(daemon.stderr).toMatch(why);
  });

  it.each<[string, Granted]>([
    ["may read and write everything", { read: ["/**"], write: ["/**"], domains: [] }],
    ["may read everything, libraries too, and change them", { read: ["/**"], write: ["/usr/local/**"] }],
    ["may write in a directory that commands are granted", { write: ["/usr/local/lib/**"] }],
  ])("is not one that %s", async (_title, granted) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/policy.toml`;
    writeFileSync(path, policyFor(granted));
    await using daemon = await startDaemon({ args: ["--policy", path] });
    expect(daemon.url).toMatch(/^http/);
  });

  it("is not taken in place of one that is in force", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/policy.toml`;
    writeFileSync(path, policyFor({ read: [`${directory.path}/**`] }));
    await using daemon = await startDaemon({ args: ["--policy", path] });
    writeFileSync(path, policyFor({ read: [`${directory.path}/*/x`] }));
    const line = await daemon.waitForLog(({ msg }) => msg.startsWith("cannot use the changed policy"));
    expect(JSON.stringify(line)).toContain("exact paths alone");
  });
});

describe("a daemon that is not root", () => {
  it("confines commands to files and programs, and says what it cannot hold", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    writeFileSync(`${path}/secret`, "not-for-commands");
    writeFileSync(`${path}/shown`, "shown");
    writeFileSync(`${path}/policy.toml`, policyFor({ read: [`${path}/shown`], commands: ["cat", "env"] }));
    await using daemon = await startDaemon({
      args: ["--policy", `${path}/policy.toml`],
      wrapper: AS_NOBODY,
      env: { PICOD_ACCESS_TOKEN: TOKEN, PATH: "/usr/bin:/bin" },
    });
    await daemon.waitForLog(({ level, msg }) => level === "warn" && /not enforced in one thing.*CAP_SYS_ADMIN/.test(msg));
    await using clients = connectTo(daemon.url);
    const { stdout, stderr } = await clients.process.execute({ command: `cat ${path}/shown ${path}/secret; env id` });
    expect(stdout).toBe("shown");
    expect(stderr).toMatch(/secret: Permission denied[\s\S]*id.*: Permission denied/);
    expect(readFileSync(`${path}/secret`, "utf8")).toBe("not-for-commands");
  });
});
