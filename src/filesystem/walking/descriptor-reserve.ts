import { closeSync } from "node:fs";
import { O_PATH, openIn } from "../../os/root.js";

/** What removing a tree needs, however deep: the directory where it begins, two on the way, and what is being looked at. */
const DESCRIPTORS = 4;

/**
 * Descriptors that an operation holds from its beginning, so that it can undo what it has done when there are none left: they are
 * released before that, in the same turn. To be used with the rights of the acting user.
 */
export class DescriptorReserve {
  readonly #fds: number[] = [];

  /** @param directoryFd any directory that may be searched. @throws EMFILE, ENFILE when there are not so many. */
  constructor(directoryFd: number) {
    try {
      while (this.#fds.length < DESCRIPTORS) this.#fds.push(openIn(directoryFd, ".", O_PATH));
    } catch (error) {
      this.release();
      throw error;
    }
  }

  release(): void {
    for (const fd of this.#fds.splice(0)) closeSync(fd);
  }
}
