import { closeSync, constants, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { describe, expect, it } from "vitest";
import { withFileRightsOf, withIdentityOf } from "../../src/os/credentials.js";
import { libc } from "../../src/os/libc.js";
import { closePipe, createPipe } from "../../src/os/pipe.js";
import { listProcesses, readEnvironment } from "../../src/os/proc.js";
import { O_PATH, openIn, Root, readLinkIn } from "../../src/os/root.js";
import { sendSignal, signalName } from "../../src/os/spawn.js";
import { errnoName, systemError } from "../../src/os/system-error.js";
import { createTemporaryFile, discard, publish } from "../../src/os/temporary-file.js";
import { UserDatabase } from "../../src/os/users.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const nobody = new UserDatabase().find("nobody");
if (nobody === undefined) throw new Error("no user nobody");

const status = (field: string) =>
  new RegExp(`^${field}:[ \\t]*(.*)$`, "m").exec(readFileSync("/proc/thread-self/status", "utf8"))?.[1]?.trim();

describe("credentials", () => {
  it("are the user's inside and the daemon's again outside, also after an error", () => {
    const own = [status("Uid"), status("Gid"), status("Groups"), status("CapEff")];
    withFileRightsOf({ user: nobody }, () => {
      expect([status("Uid"), status("Gid"), status("Groups")]).toEqual(["0\t0\t0\t65534", "0\t0\t0\t65534", "65534"]);
    });
    withIdentityOf(nobody, () => {
      expect([status("Uid"), status("Gid"), status("CapEff")]).toEqual([
        "65534\t65534\t0\t65534",
        "65534\t65534\t0\t65534",
        "0000000000000000",
      ]);
    });
    const asNobody = (_: unknown, run: () => void) => withFileRightsOf({ user: nobody }, run);
    for (const within of [asNobody, withIdentityOf]) {
      expect(() =>
        within(nobody, () => {
          throw new Error("inside");
        }),
      ).toThrow("inside");
    }
    expect([status("Uid"), status("Gid"), status("Groups"), status("CapEff")]).toEqual(own);
  });
});

describe("a pipe", () => {
  it("belongs to the user it is for and closes at exec", () => {
    const pipe = createPipe(nobody);
    const flags = (fd: number) =>
      Number.parseInt(/flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "0", 8);
    expect(flags(pipe.readFd) & 0o2000000).toBe(0o2000000);
    expect(flags(pipe.writeFd) & 0o2000000).toBe(0o2000000);
    closePipe(pipe);
  });
});

describe("Root", () => {
  it("resolves everything inside itself", () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/d`);
    writeFileSync(`${directory.path}/d/file`, "inside");
    symlinkSync("/d/file", `${directory.path}/link`);
    const root = new Root(directory.path);
    for (const path of ["/d/file", "/link", "/../../d/file", "/d/../d/file"]) {
      const fd = root.open(path, constants.O_RDONLY);
      expect(readFileSync(fd, "utf8")).toBe("inside");
      closeSync(fd);
    }
    expect(() => root.open("/etc/passwd", constants.O_RDONLY)).toThrow(
      expect.objectContaining({ code: "ENOENT", path: "/etc/passwd" }),
    );
    const fd = root.open("/link", O_PATH | constants.O_NOFOLLOW);
    expect(readLinkIn(fd, "")).toBe("/d/file");
    closeSync(fd);
  });

  it("refuses a directory that is not there", () => {
    expect(() => new Root("/no/such/directory")).toThrow(/ENOENT/);
  });
});

describe("a temporary file", () => {
  it.each([
    ["without a name", undefined],
    ["with a hidden name", ".picod-hidden.tmp"],
  ])("%s is published in one step, over another only when asked, or discarded", (_kind, name) => {
    using directory = temporaryDirectory();
    const directoryFd = new Root("/").open(directory.path, constants.O_RDONLY | constants.O_DIRECTORY);
    const create = () => {
      const file = createTemporaryFile(directoryFd);
      if (name !== undefined) {
        closeSync(file.fd);
        return { fd: openIn(directoryFd, name, constants.O_CREAT | constants.O_RDWR, 0o600), directoryFd, name };
      }
      return file;
    };
    const first = create();
    writeFileSync(first.fd, "first");
    publish(first, "file", false);
    const second = create();
    writeFileSync(second.fd, "second");
    expect(() => publish(second, "file", false)).toThrow(expect.objectContaining({ code: "EEXIST" }));
    publish(second, "file", true);
    const third = create();
    discard(third);
    for (const file of [first, second, third]) closeSync(file.fd);
    closeSync(directoryFd);
    expect(readFileSync(`${directory.path}/file`, "utf8")).toBe("second");
  });
});

describe("the process table", () => {
  it("shows this process and its environment", () => {
    const entry = listProcesses().find(({ pid }) => pid === process.pid);
    expect(entry).toMatchObject({ parentPid: process.ppid });
    expect(readEnvironment(process.pid)).toContain(`PATH=${process.env.PATH}`);
    expect(readEnvironment(2 ** 22 + 1)).toBeUndefined();
  });
});

describe("the memory of the C library", () => {
  it("can be given back where that is glibc", () => {
    expect([0, 1]).toContain(libc.malloc_trim?.(0));
  });
});

describe("signals and errors", () => {
  it("have the system's names", () => {
    expect([signalName(9), signalName(15), signalName(34), signalName(36)]).toEqual([
      "SIGKILL",
      "SIGTERM",
      "SIGRTMIN+0",
      "SIGRTMIN+2",
    ]);
    expect(sendSignal(2 ** 22 + 1, "SIGTERM")).toBe(false);
    expect(libc.openat(-100, "/no/such", 0, 0)).toBe(-1);
    expect(systemError("open", "/no/such")).toMatchObject({ code: "ENOENT", errno: -2, syscall: "open", path: "/no/such" });
    expect(systemError("wait4", undefined, osConstants.errno.ECHILD).code).toBe("ECHILD");
    expect(errnoName(new Error("no errno"))).toBeUndefined();
  });
});
