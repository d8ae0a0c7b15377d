import { PicodError } from "../../errors/picod-error.js";
import { printable } from "../../printable.js";

/** An entry that is malformed, cut off or forbidden. */
export function invalidArchive(entry: string, why: string): PicodError {
  return new PicodError("INVALID_ARCHIVE", `cannot unpack the archive: ${printable(entry)}: ${why}`, { entry: printable(entry) });
}
