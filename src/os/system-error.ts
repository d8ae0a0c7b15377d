import { constants } from "node:os";
import { getSystemErrorMap } from "node:util";
import { errno } from "./libc.js";

const names: ReadonlyMap<number, [name: string, message: string]> = getSystemErrorMap();
/** Those that libuv has no name for, ECHILD among them: Node's own calls call them UNKNOWN. */
const moreNames = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));
/** What such an error means, where a file operation meets it. */
const MORE_MESSAGES: Readonly<Record<string, string>> = { EDQUOT: "disk quota exceeded" };

/** The error that Node's own calls throw for this errno: `code`, `errno`, `syscall` and `path` are set alike. */
export function systemError(syscall: string, path?: string, number = errno()): NodeJS.ErrnoException {
  const [code, message] = names.get(-number) ?? [moreNames.get(number) ?? `ERRNO_${number}`, `error ${number}`];
  const error: NodeJS.ErrnoException = new Error(`${code}: ${message}, ${syscall}${path === undefined ? "" : ` '${path}'`}`);
  return Object.assign(error, { errno: -number, code, syscall, ...(path === undefined ? {} : { path }) });
}

/** Passes the result of a call on, or throws its errno. @throws the system error of a negative result. */
export function check(result: number, syscall: string, path?: string): number {
  if (result < 0) throw systemError(syscall, path);
  return result;
}

/** The errno name ("ENOENT") of whatever was thrown, if it is a system error. */
export function errnoName(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errno: number } = error as NodeJS.ErrnoException;
  if (typeof code !== "string" || typeof number !== "number") return undefined;
  return names.has(number) ? code : (moreNames.get(-number) ?? code);
}

/** Names the path that the caller knows, where the failed call knew only a descriptor. Returns the same error. */
export function withPath(error: unknown, path: string): unknown {
  if (errnoName(error) !== undefined) (error as NodeJS.ErrnoException).path = path;
  return error;
}

/** What an errno means, in the words of libc: "no such file or directory". */
export function describeErrno(error: NodeJS.ErrnoException): string {
  const number = error.errno ?? 0;
  return names.get(number)?.[1] ?? MORE_MESSAGES[errnoName(error) ?? ""] ?? error.message;
}
