import { withPath } from "../../os/system-error.js";

/** Calls on descriptors know no path, and those in directories only a name: says in their errors what it was about. */
export function naming<T>(path: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw isNamed(error) ? error : withPath(error, path);
  }
}

/** Whether an error says already which path it is about. */
export function isNamed(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).path?.startsWith("/") === true;
}
