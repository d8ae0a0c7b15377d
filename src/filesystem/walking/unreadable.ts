import { PicodError } from "../../errors/picod-error.js";
import { describeErrno, errnoName } from "../../os/system-error.js";

/** So many are named; the rest is only counted. */
const MAX_NAMED = 100;

/** Something that was passed over. */
export interface UnreadableEntry {
  readonly path: string;
  /** Name of the errno, or the reason. */
  readonly reason: string;
  /** For a person. */
  readonly message: string;
}

/** Collects what could not be read below a path, which ends in a slash. */
export class Unreadable {
  readonly named: UnreadableEntry[] = [];
  count = 0;
  readonly #above: string;

  constructor(above: string) {
    this.#above = above;
  }

  add(relativePath: string, error: unknown): void {
    this.count++;
    if (this.named.length === MAX_NAMED) return;
    const message = describeErrno(error as NodeJS.ErrnoException);
    const reason = error instanceof PicodError ? error.reason : (errnoName(error) ?? "EIO");
    this.named.push({ path: this.#above + relativePath, reason, message });
  }
}
