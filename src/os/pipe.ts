import { closeSync, fchownSync } from "node:fs";
import { libc } from "./libc.js";
import { check, errnoName } from "./system-error.js";
import type { User } from "./users.js";

const O_CLOEXEC = 0o2000000;
const ends = new Int32Array(2);
const ownUid = process.getuid?.();

export interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/**
 * A real pipe, not the socket pair that Node makes for children: only a pipe can be opened again as /dev/stdout. It belongs to
 * the user of the child, who may otherwise not do so. @throws EMFILE, ENFILE.
 */
export function createPipe(user: User): Pipe {
  check(libc.pipe2(ends, O_CLOEXEC), "pipe2");
  const [readFd = -1, writeFd = -1] = ends;
  if (user.uid !== ownUid) tryGive(readFd, user);
  return { readFd, writeFd };
}

/** A root without CAP_CHOWN may not; then the child can use the pipe and not open it again. */
function tryGive(fd: number, user: User): void {
  try {
    fchownSync(fd, user.uid, user.gid);
  } catch (error) {
    if (errnoName(error) !== "EPERM") throw error;
  }
}

export function closePipe(pipe: Pipe): void {
  closeSync(pipe.readFd);
  closeSync(pipe.writeFd);
}
