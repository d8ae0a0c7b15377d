import { execFileSync, spawnSync } from "node:child_process";
import {
  chownSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { remountReadOnly } from "../helpers/mounted-tmpfs.js";
import { withEtc } from "../helpers/run-picod.js";
import { type DaemonOptions, startDaemon } from "../helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { operations } from "./support/rights-operations.js";
import { fillReadOnly, readOnlySituation, SITUATIONS, type Situation, USER } from "./support/rights-situations.js";

const AS_USER = ["setpriv", `--reuid=${USER.uid}`, `--regid=${USER.gid}`, `--groups=${USER.gid},${USER.extraGid}`];

interface Way {
  readonly title: string;
  readonly rooted: boolean;
  options(root: string): DaemonOptions;
}

const WAYS: readonly Way[] = [
  { title: "root that acts for a user", rooted: false, options: () => ({ args: ["--user", USER.name] }) },
  { title: "a daemon of the user's own", rooted: false, options: () => ({ wrapper: AS_USER }) },
  {
    title: "root that acts for a user, with --root",
    rooted: true,
    options: (root) => ({ args: ["--user", USER.name, "--root", root] }),
  },
];

/** Every cell of the table for every way (`npm run test:races`), which takes minutes; otherwise a ninth of them for each. */
const SHARE = process.env.PICOD_ALL_RIGHTS === undefined ? 9 : 1;
const TIMEOUT_MS = 600_000;

/**
 * Operations that differ from what coreutils do, for another reason than rights: `situation: operation`, of regular expressions.
 */
const DIFFERENT: readonly RegExp[] = [
  // cp(1) leaves the set-group bit that a new directory has got there; a copy has the mode of its original.
  /^a set-group directory: copy into: like the shell should leave\n {2}group\/copy 42750/,
  // A copy over a file whose group the user cannot give leaves it that; only as root owners are copied.
  /^a sticky directory with one's own file: copy onto: like the shell should leave\n {2}sticky\/file 100640 65534:65534/,
  // Without /proc, as in the shell's chroot, the C library cannot set a mode without following links.
  /^one's own directory without w: copy a directory away: done, but the shell: 1 cp: setting permissions .*: Operation not supported/,
  // With fs.protected_regular the shell, which would make the file, may not open that of another there; who writes into it in place may.
  /^a sticky directory with another's file: (PUT|write|replace|patch|upload).*: done, but the shell: \d+ .*Permission denied/,
  // mkdir -p asks for each directory on the way as if it were the end of it, where that link may not be followed.
  /^a link of another in a sticky directory: make a directory: done, but the shell: 1 mkdir: .*Permission denied/,
  // cp -f removes what it may not write; a copy does so with files only.
  /^another's device: copy onto: .*permission_denied/,
];

/** A directory for cells with a read-only mount in it. */
function playground(): TemporaryDirectory {
  const directory = temporaryDirectory();
  mkdirSync(join(directory.path, "mounted"));
  mkdirSync(join(directory.path, "cells"));
  const mounted = { path: join(directory.path, "mounted"), [Symbol.dispose]: () => undefined };
  execFileSync("mount", ["-t", "tmpfs", "none", mounted.path]);
  fillReadOnly(mounted.path);
  remountReadOnly(mounted);
  return {
    path: directory.path,
    [Symbol.dispose]() {
      execFileSync("umount", ["--lazy", mounted.path]);
      // It complains about links.
      spawnSync("chattr", ["-R", "-f", "-i", "-a", join(directory.path, "cells")]);
      directory[Symbol.dispose]();
    },
  };
}

/** An /etc in which the user is in one more group. Use with `using`. */
function etcWithGroup(): TemporaryDirectory {
  const etc = temporaryDirectory();
  writeFileSync(join(etc.path, "group"), `${readFileSync("/etc/group", "utf8")}extra:x:${USER.extraGid}:${USER.name}\n`);
  return etc;
}

/** Where a cell happens, and how what happens in it sees its paths. */
class Room {
  readonly path: string;
  readonly own: string;
  readonly file: string;
  readonly directory: string | undefined;

  constructor(path: string, situation: Situation, archive: string, seen: (path: string) => string) {
    this.path = path;
    mkdirSync(path);
    mkdirSync(join(path, "tree"), { mode: 0o750 });
    writeFileSync(join(path, "source"), "source\n", { mode: 0o640 });
    writeFileSync(join(path, "tree/leaf"), "leaf\n");
    copyFileSync(archive, join(path, "archive"));
    for (const name of [".", "tree", "source", "tree/leaf", "archive"]) chownSync(join(path, name), USER.uid, USER.gid);
    const prepared = situation.prepare((name) => join(path, name), seen);
    this.own = seen(path);
    this.file = seen(prepared.file);
    this.directory = prepared.directory === undefined ? undefined : seen(prepared.directory);
  }

  /** A line for each entry: all but times. */
  describe(): string[] {
    const names = readdirSync(this.path, { recursive: true, encoding: "utf8" }).toSorted();
    return names.map((name) => {
      const path = join(this.path, name);
      const stats = lstatSync(path);
      const content = stats.isFile() ? JSON.stringify(readFileSync(path, "utf8").slice(0, 20)) : "";
      const target = stats.isSymbolicLink() ? readlinkSync(path).replace(this.own, "") : "";
      return `${name} ${stats.mode.toString(8)} ${stats.uid}:${stats.gid} ${target}${name === "archive" ? "" : content}`;
    });
  }
}

interface ShellCell {
  readonly room: Room;
  readonly script: string;
}

interface Outcome {
  readonly title: string;
  readonly by: Room;
  /** What was in the room. */
  readonly before: string[];
  readonly failure: string | undefined;
  readonly shell: ShellCell;
}

/** Runs the shell's half of all cells: exit status and complaint of each. */
function runShells(cells: readonly ShellCell[], jail: string | undefined) {
  const script = cells
    .map(({ room: { own, file, directory = "" }, script }) => {
      const names = `own='${own}'; file='${file}'; directory='${directory}'`;
      return `${names}; said=$( ( ${script} ) 2>&1 >/dev/null </dev/null ); printf '%s %s\\0' $? "$said"`;
    })
    .join("\n");
  const [file = "", ...args] = jail === undefined ? [...AS_USER, "sh"] : inJail(jail);
  const printed = execFileSync(file, args, { input: `umask 022\n${script}\n`, encoding: "utf8", cwd: "/" });
  return printed.split("\0").slice(0, -1);
}

/** A shell for which a directory is `/`, with the machine's programs in it. */
function inJail(root: string): string[] {
  mkdirSync(join(root, "usr"));
  for (const name of ["bin", "lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
  mkdirSync(join(root, "dev"));
  const prepare = 'mount --bind /usr "$1/usr" && mount --bind /dev "$1/dev" && exec chroot "$@"';
  return ["unshare", "--mount", "sh", "-c", prepare, "sh", root, ...AS_USER, "sh"];
}

it.each(WAYS)(
  "$title can do what the user's shell can",
  async (way) => {
    const { rooted, options } = way;
    using ground = playground();
    using etc = etcWithGroup();
    const seen = (path: string) => (rooted ? path.slice(ground.path.length) : path);
    const archive = join(ground.path, "archive.tar");
    writeFileSync(join(ground.path, "unpacked"), "unpacked\n");
    execFileSync("tar", ["-c", "--mode=0640", "-C", ground.path, "-f", archive, "unpacked"]);
    const all = operations(new Uint8Array(readFileSync(archive)));
    const started = options(ground.path);
    await using daemon = await startDaemon({ ...started, wrapper: [...withEtc(etc.path), ...(started.wrapper ?? [])] });
    await using clients = connectTo(daemon.url);
    const outcomes: Outcome[] = [];
    for (const [number, situation] of [...SITUATIONS, readOnlySituation(join(ground.path, "mounted"))].entries()) {
      const room = (name: string) => new Room(join(ground.path, "cells", `${number} ${name}`), situation, archive, seen);
      const hasDirectory = room("first").directory !== undefined;
      const running = all
        .filter(
          ({ about }, index) => (about === "file" || hasDirectory) && (number + index + 3 * WAYS.indexOf(way)) % SHARE === 0,
        )
        .map(async (operation) => {
          const by = room(operation.name);
          const { own, file, directory = "" } = by;
          const before = by.describe();
          const failure = await operation.run(clients, { own, file, directory }, daemon).then(
            () => undefined,
            (error) => ConnectError.from(error).message,
          );
          const isRefused = operation.about === "file" && situation.refused?.test(operation.name) === true;
          const shell = { room: room(`${operation.name}, shell`), script: isRefused ? "false" : operation.shell };
          return { title: `${situation.title}: ${operation.name}`, by, before, failure, shell };
        });
      outcomes.push(...(await Promise.all(running)));
    }
    const told = runShells(
      outcomes.map(({ shell }) => shell),
      rooted ? ground.path : undefined,
    );
    const wrong = outcomes.flatMap(({ title, by, before, failure, shell }, index) => {
      const said = told[index] ?? "";
      const may = said.startsWith("0 ");
      if (may !== (failure === undefined)) return [`${title}: ${failure ?? "done"}, but the shell: ${said}`];
      const [left, right] = [by.describe(), may ? shell.room.describe() : before];
      if (JSON.stringify(left) === JSON.stringify(right)) return [];
      return [
        `${title}: ${may ? "like the shell" : "refused, so"} should leave\n  ${right.filter((line) => !left.includes(line)).join("\n  ")}\ninstead of\n  ${left.filter((line) => !right.includes(line)).join("\n  ")}`,
      ];
    });
    expect(outcomes.length).toBeGreaterThan(900 / SHARE);
    expect(wrong.filter((line) => !DIFFERENT.some((pattern) => pattern.test(line)))).toEqual([]);
  },
  TIMEOUT_MS,
);
