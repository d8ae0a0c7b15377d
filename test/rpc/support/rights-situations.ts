import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { posix } from "node:path";

/** Whom the operations act as: nobody, who is in one more group by the /etc of the daemon. */
export const USER = { name: "nobody", uid: 65534, gid: 65534, extraGid: 4242 } as const;
/** Another one. */
const OTHER = 1;

/** What a cell of the table is about. Paths are as the operation has them. */
export interface Prepared {
  /** The existing file; a link, a device … to it. */
  readonly file: string;
  /** The directory; undefined where the situation is about a file only. */
  readonly directory?: string;
}

export interface Situation {
  readonly title: string;
  /** Operations that the contract refuses whatever the rights: what a shell does then, wait for a FIFO perhaps, says nothing. */
  readonly refused?: RegExp;
  /** Makes it in a directory of the user's own. @param seen how the operation sees a path of this machine. */
  prepare(at: (name: string) => string, seen: (path: string) => string): Prepared;
}

function file(path: string, mode: number, uid: number = USER.uid, gid: number = uid): void {
  writeFileSync(path, "content\n");
  chownSync(path, uid, gid);
  chmodSync(path, mode);
}

function directory(path: string, mode: number, uid: number = USER.uid, gid: number = uid): void {
  mkdirSync(path);
  chownSync(path, uid, gid);
  chmodSync(path, mode);
}

/** A directory of that mode and owner with a file and a directory in it. */
function filled(path: string, mode: number, uid: number, innerMode = 0o666, innerUid = uid, gid = uid): Prepared {
  directory(path, mode, uid, gid);
  file(`${path}/file`, innerMode, innerUid, gid);
  return { file: `${path}/file`, directory: path };
}

function node(path: string, kind: string, mode: number, uid: number): Prepared {
  execFileSync("mknod", [path, ...kind.split(" ")]);
  chownSync(path, uid, uid);
  chmodSync(path, mode);
  return { file: path };
}

const NOT_ITS_CONTENT = /^(read|replace|patch|upload|search|copy onto|archive|GET|PUT)/;

export const SITUATIONS: readonly Situation[] = [
  { title: "one's own", prepare: (at) => filled(at("own"), 0o755, USER.uid, 0o644) },
  { title: "one's own, write-protected", prepare: (at) => filled(at("own"), 0o755, USER.uid, 0o444) },
  { title: "one's own directory without w", prepare: (at) => filled(at("own"), 0o555, USER.uid) },
  { title: "one's own directory without x", prepare: (at) => filled(at("own"), 0o600, USER.uid) },
  { title: "one's own directory without r", prepare: (at) => filled(at("own"), 0o300, USER.uid) },
  { title: "one's own, for all others but not oneself", prepare: (at) => filled(at("own"), 0o077, USER.uid, 0o066) },
  { title: "another's 0600 file", prepare: (at) => filled(at("own"), 0o755, USER.uid, 0o600, OTHER) },
  { title: "another's 0644 file", prepare: (at) => filled(at("own"), 0o755, USER.uid, 0o644, OTHER) },
  { title: "another's 0666 file", prepare: (at) => filled(at("own"), 0o755, USER.uid, 0o666, OTHER) },
  { title: "another's 0700 directory", prepare: (at) => filled(at("other"), 0o700, OTHER) },
  {
    title: "below another's 0700 directory",
    prepare: (at) => {
      directory(at("other"), 0o700, OTHER);
      return filled(at("other/below"), 0o777, OTHER);
    },
  },
  { title: "another's 0755 directory", prepare: (at) => filled(at("other"), 0o755, OTHER) },
  { title: "another's 0777 directory", prepare: (at) => filled(at("other"), 0o777, OTHER, 0o600) },
  { title: "a sticky directory with another's file", prepare: (at) => filled(at("sticky"), 0o1777, 0, 0o666, OTHER) },
  { title: "a sticky directory with one's own file", prepare: (at) => filled(at("sticky"), 0o1777, 0, 0o644, USER.uid) },
  {
    title: "a set-group directory",
    prepare: (at) => filled(at("group"), 0o2775, USER.uid, 0o664, USER.uid, USER.extraGid),
  },
  { title: "a group one is in", prepare: (at) => filled(at("group"), 0o770, OTHER, 0o660, OTHER, USER.extraGid) },
  { title: "another's group that is kept out", prepare: (at) => filled(at("group"), 0o707, OTHER, 0o606, OTHER, USER.extraGid) },
  {
    title: "a link of another in a sticky directory",
    prepare: (at) => {
      filled(at("target"), 0o777, OTHER);
      directory(at("sticky"), 0o1777, 0);
      for (const [name, target] of [
        ["file", "../target/file"],
        ["directory", "../target"],
      ] as const) {
        symlinkSync(target, at(`sticky/${name}`));
        execFileSync("chown", ["-h", `${OTHER}`, at(`sticky/${name}`)]);
      }
      return { file: at("sticky/file"), directory: at("sticky/directory") };
    },
  },
  {
    title: "..",
    prepare: (at) => {
      filled(at("own"), 0o755, USER.uid);
      directory(at("sub"), 0o755);
      return { file: at("sub/../own/file"), directory: at("sub/../own") };
    },
  },
  {
    title: ".. from a directory that may not be searched",
    prepare: (at) => {
      filled(at("own"), 0o755, USER.uid);
      directory(at("other"), 0o700, OTHER);
      return { file: at("other/../own/file"), directory: at("other/../own") };
    },
  },
  {
    title: "an absolute symbolic link",
    prepare: (at, seen) => {
      filled(at("own"), 0o755, USER.uid);
      symlinkSync(seen(at("own/file")), at("link"));
      symlinkSync(seen(at("own")), at("to-directory"));
      return { file: at("link"), directory: at("to-directory") };
    },
  },
  {
    title: "a link to another's 0700 directory",
    prepare: (at) => {
      filled(at("other"), 0o700, OTHER);
      symlinkSync("other/file", at("link"));
      symlinkSync("other", at("to-directory"));
      return { file: at("link"), directory: at("to-directory") };
    },
  },
  {
    title: "a dangling link",
    prepare: (at) => {
      symlinkSync("nothing", at("link"));
      return { file: at("link") };
    },
  },
  { title: "a device", refused: /^(read|GET|search)/, prepare: (at) => node(at("null"), "c 1 3", 0o666, OTHER) },
  {
    title: "another's device",
    refused: /^(read|GET|search)/,
    prepare: (at) => node(at("null"), "c 1 3", 0o600, OTHER),
  },
  { title: "a FIFO", refused: NOT_ITS_CONTENT, prepare: (at) => node(at("fifo"), "p", 0o666, USER.uid) },
  {
    title: "a socket",
    refused: NOT_ITS_CONTENT,
    prepare: (at) => {
      const listen = "use IO::Socket::UNIX; IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die";
      execFileSync("perl", ["-e", listen, posix.basename(at("socket"))], { cwd: posix.dirname(at("socket")) });
      chownSync(at("socket"), USER.uid, USER.uid);
      return { file: at("socket") };
    },
  },
  {
    title: "an immutable file",
    prepare: (at) => {
      const prepared = filled(at("own"), 0o755, USER.uid);
      execFileSync("chattr", ["+i", prepared.file]);
      return prepared;
    },
  },
  {
    title: "an immutable directory",
    prepare: (at) => {
      const prepared = filled(at("own"), 0o755, USER.uid);
      execFileSync("chattr", ["+i", at("own")]);
      return prepared;
    },
  },
  {
    title: "an append-only file",
    prepare: (at) => {
      const prepared = filled(at("own"), 0o755, USER.uid);
      execFileSync("chattr", ["+a", prepared.file]);
      return prepared;
    },
  },
];

/** Of a mount that all cells share, since nothing in it can change. */
export function readOnlySituation(mounted: string): Situation {
  return {
    title: "a read-only mount",
    prepare: () => ({ file: `${mounted}/own/file`, directory: `${mounted}/own` }),
  };
}

/** Makes what the situation of that name has on the mount, before it becomes read-only. */
export function fillReadOnly(mounted: string): void {
  filled(`${mounted}/own`, 0o777, USER.uid);
}
