import { close, constants } from "node:fs";
import type { FileStats } from "../../os/directory.js";
import { O_PATH, openIn, unlinkIn } from "../../os/root.js";

const BLOCK_BYTES = 512n;
/** To free more takes the file system longer than the main thread may be held. */
const LARGE_BYTES = 16n * 1024n * 1024n;
/** Closed at once: each has a descriptor and a thread. */
const MAX_CLOSING = 16;

/** Unlinks files. The space of a large one is freed on a thread: a descriptor keeps it until then. */
export class Unlinker {
  readonly #closing = new Set<Promise<void>>();

  /** @throws errno of unlink(2). */
  unlink(directoryFd: number, name: string, { blocks, nlink }: FileStats): void {
    if (nlink > 1n || blocks * BLOCK_BYTES < LARGE_BYTES) {
      unlinkIn(directoryFd, name);
      return;
    }
    const fd = openIn(directoryFd, name, O_PATH | constants.O_NOFOLLOW);
    try {
      unlinkIn(directoryFd, name);
    } finally {
      const closed = new Promise<void>((resolve) => close(fd, () => resolve())).then(() => {
        this.#closing.delete(closed);
      });
      this.#closing.add(closed);
    }
  }

  /** What to wait for before more is unlinked, if anything. */
  get full(): Promise<unknown> | undefined {
    return this.#closing.size < MAX_CLOSING ? undefined : Promise.race(this.#closing);
  }

  allClosed(): Promise<unknown> {
    return Promise.all(this.#closing);
  }
}
