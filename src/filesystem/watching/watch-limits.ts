import { closeSync, openSync, readFileSync } from "node:fs";
import { PicodError } from "../../errors/picod-error.js";
import { errnoName } from "../../os/system-error.js";

/** The limit of the machine, and of the user namespace that the daemon may be in. */
const WATCHES = ["fs.inotify.max_user_watches", "user.max_inotify_watches"];
const INSTANCES = ["fs.inotify.max_user_instances", "user.max_inotify_instances"];

/** What to raise, where inotify refuses with an errno that means something else elsewhere; any other error as it is. */
export function explainWatchError(error: unknown, path: string): unknown {
  const { syscall } = error as NodeJS.ErrnoException;
  const errno = errnoName(error);
  if (errno === "ENOSPC" && syscall === "inotify_add_watch") return limitReached(path, "watches", WATCHES);
  if (errno === "EMFILE" && syscall === "inotify_init1" && hasDescriptorsLeft())
    return limitReached(path, "instances", INSTANCES);
  return error;
}

function limitReached(path: string, what: string, sysctls: readonly string[]): PicodError {
  const [lowest] = sysctls
    .map((name) => ({ name, value: readSysctl(name) }))
    .filter(({ value }) => !Number.isNaN(value))
    .sort((a, b) => a.value - b.value);
  const limit = lowest === undefined ? sysctls[0] : `${lowest.name} (now ${lowest.value})`;
  return new PicodError("WATCH_LIMIT_REACHED", `cannot watch ${path}: no inotify ${what} are left: raise ${limit}`, {
    path,
    ...(lowest === undefined ? {} : { sysctl: lowest.name, limit: String(lowest.value) }),
  });
}

function readSysctl(name: string): number {
  try {
    return Number.parseInt(readFileSync(`/proc/sys/${name.replaceAll(".", "/")}`, "latin1"), 10);
  } catch {
    return Number.NaN;
  }
}

function hasDescriptorsLeft(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return true;
  } catch {
    return false;
  }
}
