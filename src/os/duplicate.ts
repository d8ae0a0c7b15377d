import { libc } from "./libc.js";
import { check } from "./system-error.js";

/** fcntl(2). */
const F_DUPFD_CLOEXEC = 1030;

/** Another descriptor of the same open file, to be closed for itself; children do not get it. @throws EMFILE. */
export function duplicate(fd: number): number {
  return check(libc.fcntl(fd, F_DUPFD_CLOEXEC, 0), "fcntl");
}
