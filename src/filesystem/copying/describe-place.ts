import { isSymbolicLink, statIn } from "../../os/directory.js";
import { readLinkIn } from "../../os/root.js";
import type { Access } from "../access.js";
import { describeEntry, type EntryInfo } from "../entry-info.js";
import { naming } from "./naming.js";
import type { Place } from "./place.js";

/** Describes what has a name now; a symbolic link itself. @throws errno of stat(2). */
export function describePlace(access: Access, { directoryFd, name, path }: Place): EntryInfo {
  return naming(path, () => {
    const stats = statIn(directoryFd, name);
    return describeEntry(path, stats, access.users, isSymbolicLink(stats) ? readLinkIn(directoryFd, name) : undefined);
  });
}
