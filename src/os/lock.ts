import { libc } from "./libc.js";
import { errnoName, systemError } from "./system-error.js";

const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Locks an open file against whoever asks the same, flock(2), until the descriptor is closed. Returns false when somebody else has the lock; a
 * file system that knows no locks gives it to everybody.
 */
export function lockAlone(fd: number): boolean {
  return libc.flock(fd, LOCK_EX | LOCK_NB) === 0 || errnoName(systemError("flock")) !== "EAGAIN";
}
