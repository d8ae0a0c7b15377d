import { pathBytes } from "../../os/path-bytes.js";
import { invalidArchive } from "./invalid-archive.js";

/** PATH_MAX of Linux, the final NUL not counted. */
const MAX_PATH_BYTES = 4095;

/**
 * The components of a name in an archive; none for the directory itself. `why` begins the message about one that is refused.
 * @throws INVALID_ARCHIVE for a name that is empty, absolute or too long, or has `..` or a NUL in it.
 */
export function unpackPath(entry: string, path: string, why: string): string[] {
  if (path === "") throw invalidArchive(entry, `${why} is empty`);
  if (path.startsWith("/")) throw invalidArchive(entry, `${why} is absolute`);
  if (path.includes("\0")) throw invalidArchive(entry, `${why} holds a NUL byte`);
  if (pathBytes(path).length > MAX_PATH_BYTES) throw invalidArchive(entry, `${why} is longer than ${MAX_PATH_BYTES} bytes`);
  const components = path.split("/").filter((component) => component !== "" && component !== ".");
  if (components.includes("..")) throw invalidArchive(entry, `${why} has .. in it`);
  return components;
}
