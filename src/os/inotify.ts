import { close, read } from "node:fs";
import { libc } from "./libc.js";
import { decodePath } from "./path-bytes.js";
import { check, systemError } from "./system-error.js";

/** What an event says, inotify(7). */
export const IN = {
  MODIFY: 0x2,
  ATTRIB: 0x4,
  MOVED_FROM: 0x40,
  MOVED_TO: 0x80,
  CREATE: 0x100,
  DELETE: 0x200,
  DELETE_SELF: 0x400,
  MOVE_SELF: 0x800,
  UNMOUNT: 0x2000,
  Q_OVERFLOW: 0x4000,
  IGNORED: 0x8000,
  ISDIR: 0x40000000,
} as const;

const IN_CLOEXEC = 0o2000000;
const IN_ONLYDIR = 0x01000000;
/** Says nothing of files without a name, such as an upload has until it is whole. */
const IN_EXCL_UNLINK = 0x04000000;
/** The same for everybody: two watches of one inode are one in the kernel, and its last mask counts. */
const MASK =
  IN.CREATE |
  IN.MODIFY |
  IN.DELETE |
  IN.DELETE_SELF |
  IN.MOVED_FROM |
  IN.MOVED_TO |
  IN.MOVE_SELF |
  IN.ATTRIB |
  IN_ONLYDIR |
  IN_EXCL_UNLINK;

export interface InotifyEvent {
  /** The kernel's number of the watch; -1 of IN.Q_OVERFLOW. */
  readonly wd: number;
  readonly mask: number;
  /** The same for the two ends of a rename. */
  readonly cookie: number;
  /** Of the entry in the directory; "" when it is about the directory itself. */
  readonly name: string;
}

const HEADER_BYTES = 16;
/** Some hundred events, so that no turn is long. */
const BUFFER_BYTES = 16 * 1024;
/** Nothing ever happens to it, and a directory it is not: a watch of it is a mark, see `mark`. */
const MARK_PATH = "/dev/null";

/**
 * An inotify instance. libuv cannot poll one, so one thread of its pool waits in read(2) as long as it is open; removing the mark
 * wakes that thread. Nothing can end the process while it waits, hence the listener for "exit".
 */
export class Inotify {
  readonly #fd: number;
  readonly #onEvents: (events: readonly InotifyEvent[]) => void;
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  readonly #onExit = () => this.close();
  /** Undefined when it could not be put back. */
  #mark: number | undefined;
  #highest = 0;
  #closing = false;

  /** @throws EMFILE when the user has max_user_instances of them, ENOSPC at max_user_watches. */
  constructor(onEvents: (events: readonly InotifyEvent[]) => void) {
    this.#onEvents = onEvents;
    this.#fd = check(libc.inotify_init1(IN_CLOEXEC), "inotify_init1");
    this.#mark = this.#putMark();
    if (this.#mark === undefined) {
      const error = systemError("inotify_add_watch", MARK_PATH);
      close(this.#fd);
      throw error;
    }
    process.on("exit", this.#onExit);
    this.#read();
  }

  /**
   * Watches an opened directory. Returns the number of the watch, which is the same for every descriptor of one inode. To be called
   * with the rights of whoever wants to know. @throws ENOSPC at max_user_watches, EACCES.
   */
  add(directoryFd: number): number {
    const wd = check(libc.inotify_add_watch(this.#fd, `/proc/self/fd/${directoryFd}`, MASK), "inotify_add_watch");
    this.#highest = Math.max(this.#highest, wd);
    return wd;
  }

  /** What had happened until then is still reported. The kernel may have ended that watch itself. */
  remove(wd: number): void {
    libc.inotify_rm_watch(this.#fd, wd);
  }

  /**
   * Puts a mark behind all that has happened: returns the number of a watch whose IN.IGNORED will arrive after it. Undefined at
   * max_user_watches, when others have taken the place of the last one.
   */
  mark(): number | undefined {
    const mark = this.#mark ?? this.#putMark();
    if (mark !== undefined) libc.inotify_rm_watch(this.#fd, mark);
    this.#mark = this.#putMark();
    return mark;
  }

  /** Ends all watches; nothing is reported any more. */
  close(): void {
    if (this.#closing) return;
    this.#closing = true;
    process.off("exit", this.#onExit);
    if (this.#mark !== undefined) libc.inotify_rm_watch(this.#fd, this.#mark);
    else for (let wd = 1; wd <= this.#highest && libc.inotify_rm_watch(this.#fd, wd) < 0; ) wd++;
  }

  #putMark(): number | undefined {
    const wd = libc.inotify_add_watch(this.#fd, MARK_PATH, IN.DELETE_SELF);
    this.#highest = Math.max(this.#highest, wd);
    return wd < 0 ? undefined : wd;
  }

  #read(): void {
    read(this.#fd, this.#buffer, 0, BUFFER_BYTES, null, (error, length) => {
      if (this.#closing) {
        // On a thread: with many watches it takes the kernel a while.
        close(this.#fd);
        return;
      }
      if (error !== null) throw error;
      this.#onEvents(parseEvents(this.#buffer.subarray(0, length)));
      this.#read();
    });
  }
}

function parseEvents(bytes: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = [];
  for (let at = 0; at < bytes.length; ) {
    const nameBytes = bytes.readUInt32LE(at + 12);
    const end = at + HEADER_BYTES + nameBytes;
    const name = nameBytes === 0 ? "" : decodePath(bytes.subarray(at + HEADER_BYTES, bytes.indexOf(0, at + HEADER_BYTES)));
    events.push({ wd: bytes.readInt32LE(at), mask: bytes.readUInt32LE(at + 4), cookie: bytes.readUInt32LE(at + 8), name });
    at = end;
  }
  return events;
}
