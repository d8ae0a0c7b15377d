import { libc } from "./libc.js";
import { check } from "./system-error.js";

/** fcntl(2). */
const F_DUPFD_CLOEXEC = 1030;
/** Descriptors below are the daemon's own input, output and errors. */
const LOWEST_FD = 3;

/** Another descriptor of what one was opened for, to be closed for itself. @throws EMFILE. */
export function duplicate(fd: number): number {
  return check(libc.fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD), "fcntl");
}
