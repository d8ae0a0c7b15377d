import { libc, onThread, SYSCALL } from "./libc.js";
import { check, errnoName, systemError } from "./system-error.js";

const SEEK_SET = 0;
const SEEK_DATA = 3;
const SEEK_HOLE = 4;
const FICLONE = 0x40049409;
const SYNC_FILE_RANGE_WRITE = 2;

/** Sets where an opened file is read or written next. */
export function seek(fd: number, offset: number): void {
  check(libc.lseek(fd, offset, SEEK_SET), "lseek");
}

/**
 * The first piece of a file, from `offset` on, that is no hole; undefined when only a hole is left. Where the file system cannot tell,
 * everything is data.
 */
export function nextData(fd: number, offset: number, end: number): { start: number; end: number } | undefined {
  if (offset >= end) return undefined;
  try {
    const start = check(libc.lseek(fd, offset, SEEK_DATA), "lseek");
    return start >= end ? undefined : { start, end: Math.min(end, check(libc.lseek(fd, start, SEEK_HOLE), "lseek")) };
  } catch (error) {
    if (errnoName(error) === "ENXIO") return undefined;
    if (errnoName(error) === "EINVAL") return { start: offset, end };
    throw error;
  }
}

/** Makes the whole of one file the content of another that shares its blocks (reflink), on a thread. @throws errno of ioctl_ficlone(2). */
export async function cloneData(from: number, to: number): Promise<void> {
  const [result, errno] = await onThread(libc.ioctlNumber, to, FICLONE, from);
  if (result < 0) throw systemError("clone", undefined, errno);
}

/**
 * Copies from where one descriptor stands to where the other does, within the kernel, on a thread. Resolves with the bytes; 0 at the end.
 * @throws errno of copy_file_range(2).
 */
export async function copyRange(from: number, to: number, length: number): Promise<number> {
  const [result, errno] = await onThread(libc.copy_file_range, SYSCALL.copy_file_range, from, null, to, null, length, 0);
  if (result < 0) throw systemError("copy", undefined, errno);
  return result;
}

/**
 * Has the kernel begin to write a file to its disk, on a thread. Renaming over another file does so too on ext4, and takes tens of
 * milliseconds for it. No promise: where it cannot be, nothing happens.
 */
export async function beginWriteback(fd: number): Promise<void> {
  await onThread(libc.sync_file_range, fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/** Whether an error says that these two files, or this kernel, cannot do it, rather than that it went wrong. */
export function cannotShare(error: unknown): boolean {
  return UNABLE.has(errnoName(error) ?? "");
}

const UNABLE = new Set(["EXDEV", "EINVAL", "EOPNOTSUPP", "ENOTSUP", "ENOSYS", "ENOTTY", "EPERM", "EBADF", "ETXTBSY"]);
