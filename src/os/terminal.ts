import { closeSync, constants, openSync } from "node:fs";
import { withFileRightsOf } from "./credentials.js";
import { libc } from "./libc.js";
import { check } from "./system-error.js";
import type { User } from "./users.js";

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface Terminal {
  /** The daemon's side. */
  readonly masterFd: number;
  /**
   * Kept open while the program runs: without any, reading ends and closing the daemon's side hangs up, and a program may have
   * closed its own for a moment.
   */
  readonly slaveFd: number;
  /** The program's side: /dev/pts/N. */
  readonly path: string;
}

const TIOCGPTN = 0x80045430;
const TIOCSPTLCK = 0x40045431;
const TIOCSWINSZ = 0x5414;

/** A new pseudo-terminal that belongs to `user`. @throws ENOENT without devpts, EACCES, EMFILE, ENOSPC when there are too many. */
export function openTerminal(user: User, size: TerminalSize): Terminal {
  // The kernel gives the other side to whoever opens this one.
  const masterFd = withFileRightsOf({ user }, () => openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY));
  try {
    const number = new Int32Array(1);
    check(libc.ioctl(masterFd, TIOCSPTLCK, number), "unlockpt");
    check(libc.ioctl(masterFd, TIOCGPTN, number), "ptsname");
    resizeTerminal(masterFd, size);
    const path = `/dev/pts/${number[0]}`;
    const slaveFd = withFileRightsOf({ user }, () => openSync(path, constants.O_RDWR | constants.O_NOCTTY));
    return { masterFd, slaveFd, path };
  } catch (error) {
    closeSync(masterFd);
    throw error;
  }
}

/** The foreground process group gets SIGWINCH from the kernel when the size is another one. */
export function resizeTerminal(masterFd: number, { cols, rows }: TerminalSize): void {
  check(libc.ioctl(masterFd, TIOCSWINSZ, Uint16Array.of(rows, cols, 0, 0)), "resize");
}
