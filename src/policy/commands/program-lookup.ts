import { closeSync, lstatSync, openSync, readlinkSync, readSync, realpathSync } from "node:fs";
import { posix } from "node:path";
import { isProgram } from "../../os/program.js";

/** Interpreters of interpreters, as the kernel follows them. */
const MAX_INTERPRETERS = 5;
/** As the kernel follows them. */
const MAX_LINKS = 40;
const FIRST_BYTES = 4096;

/** Where `name` is, looked up in `path` as a shell does; with its directory's links resolved, its own name as it is. */
export function locateProgram(name: string, path: string): string | undefined {
  if (name.includes("/")) return name.startsWith("/") && isProgram(name) ? withRealDirectory(name) : undefined;
  const found = path.split(":").find((directory) => directory.startsWith("/") && isProgram(`${directory}/${name}`));
  return found === undefined ? undefined : withRealDirectory(`${found}/${name}`);
}

/** A file, and the links that it was found by, the directories of which are real. */
export interface ExecutedFile {
  readonly file: string;
  readonly links: readonly string[];
}

/** The files that the kernel executes for a program: itself behind its links, what its `#!` names, and the loader of each. */
export function executedFiles(program: string, path: string): ExecutedFile[] {
  const files: ExecutedFile[] = [];
  let next: string | undefined = program;
  for (let depth = 0; next !== undefined && depth <= MAX_INTERPRETERS; depth++) {
    const file = realpathSync(next);
    files.push({ file, links: linksTo(next) });
    const head = readHead(file);
    const loader = elfInterpreter(head);
    if (loader !== undefined && isProgram(loader)) files.push({ file: realpathSync(loader), links: linksTo(loader) });
    const [interpreter, argument] = scriptInterpreter(head);
    next = interpreter !== undefined && isProgram(interpreter) ? interpreter : undefined;
    // It executes what its argument names.
    const named = next !== undefined && posix.basename(next) === "env" ? locateProgram(argument ?? "", path) : undefined;
    if (named !== undefined) files.push(...executedFiles(named, path));
  }
  return files;
}

function withRealDirectory(path: string): string {
  return posix.join(realpathSync(posix.dirname(path)), posix.basename(path));
}

function linksTo(path: string): string[] {
  const links: string[] = [];
  let next = withRealDirectory(path);
  for (let depth = 0; depth <= MAX_LINKS && lstatSync(next).isSymbolicLink(); depth++) {
    links.push(next);
    next = withRealDirectory(posix.resolve(posix.dirname(next), readlinkSync(next)));
  }
  return links;
}

function readHead(file: string): Buffer {
  const fd = openSync(file, "r");
  try {
    const head = Buffer.alloc(FIRST_BYTES);
    return head.subarray(0, readSync(fd, head, 0, FIRST_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}

function scriptInterpreter(head: Buffer): (string | undefined)[] {
  const line = /^#![ \t]*([^\0\n]*)/.exec(head.toString("latin1"))?.[1]?.trim() ?? "";
  const [interpreter, ...rest] = line.split(/[ \t]+/);
  const argument = rest.find((word) => !word.startsWith("-") && !word.includes("="));
  return [interpreter === "" ? undefined : interpreter, argument];
}

const PT_INTERP = 3;

/** elf(5), 64 bits, of this machine's order. */
function elfInterpreter(head: Buffer): string | undefined {
  if (head.length < 64 || head.toString("latin1", 1, 4) !== "ELF" || head[4] !== 2) return undefined;
  const [at, size, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
  for (let i = 0; i < count && at + (i + 1) * size <= head.length; i++) {
    const header = head.subarray(at + i * size);
    if (header.readUInt32LE(0) !== PT_INTERP) continue;
    const [offset, length] = [Number(header.readBigUInt64LE(8)), Number(header.readBigUInt64LE(32))];
    return head.toString("latin1", offset, offset + length - 1) || undefined;
  }
  return undefined;
}
