import { closeSync, constants } from "node:fs";
import { type FileStats, isSymbolicLink } from "../../os/directory.js";
import { makeNodeIn, makeSymbolicLinkIn } from "../../os/make-entry.js";
import { O_PATH, openIn, readLinkIn } from "../../os/root.js";
import { giveAttributes } from "../attributes.js";

/** Makes a copy of a symbolic link, a FIFO or, as root, a device node, under a name that is free. @throws EPERM, errno of mknod(2). */
export function copySpecial(
  from: { readonly directoryFd: number; readonly name: string },
  stats: FileStats,
  directoryFd: number,
  name: string,
): undefined {
  if (isSymbolicLink(stats)) makeSymbolicLinkIn(directoryFd, name, readLinkIn(from.directoryFd, from.name));
  else makeNodeIn(directoryFd, name, (stats.mode & BigInt(constants.S_IFMT)) | 0o600n, stats.rdev);
  const fd = openIn(directoryFd, name, O_PATH);
  try {
    giveAttributes(fd, { stats, xattrs: [] });
  } finally {
    closeSync(fd);
  }
}
