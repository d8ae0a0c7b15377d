import { isUtf8 } from "node:buffer";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryInfo, FileKind } from "../../filesystem/entry-info.js";
import { linkTarget } from "../../filesystem/link-target.js";
import { stat } from "../../filesystem/stat.js";
import { type EntryInfoSchema, FileType } from "../../gen/envd/filesystem/filesystem_pb.js";
import { toTimestamp } from "../timestamp.js";
import type { EnvdAccess } from "./access.js";

/** Where attributes that clients give a file are kept. */
export const METADATA_PREFIX = "user.e2b.";

const LETTERS: Readonly<Record<FileKind, string>> = {
  file: "",
  directory: "d",
  symlink: "L",
  fifo: "p",
  socket: "S",
  "character-device": "Dc",
  "block-device": "D",
};

/**
 * Describes an entry, a link itself with type, mode and metadata of what it leads to. A link that leads nowhere is no error.
 * @throws errno of open(2).
 */
export function describe(access: EnvdAccess, path: string): MessageInitShape<typeof EntryInfoSchema> {
  const entry = stat(access, path, false, true);
  const { name, size, owner, group, modifiedTimeNs } = entry;
  const about = { name, path, size, owner, group, permissions: goPermissions(entry), modifiedTime: toTimestamp(modifiedTimeNs) };
  if (entry.kind !== "symlink") return { ...about, ...ofKind(entry) };
  const target = linkTarget(access, path);
  return { ...about, ...(target === undefined ? {} : ofKind(target)), symlinkTarget: target?.path ?? path };
}

/** The same, but undefined for what is gone by now. */
export function tryDescribe(access: EnvdAccess, path: string): MessageInitShape<typeof EntryInfoSchema> | undefined {
  try {
    return describe(access, path);
  } catch {
    return undefined;
  }
}

/** Those of a file, without their prefix. What is not text is passed over. */
export function toMetadata(xattrs: ReadonlyMap<string, Uint8Array> | undefined): Record<string, string> {
  const ours = [...(xattrs ?? [])].filter(([name, value]) => name.startsWith(METADATA_PREFIX) && isUtf8(value));
  return Object.fromEntries(ours.map(([name, value]) => [name.slice(METADATA_PREFIX.length), Buffer.from(value).toString()]));
}

function ofKind({ kind, mode, xattrs }: EntryInfo) {
  const type = kind === "file" ? FileType.FILE : kind === "directory" ? FileType.DIRECTORY : FileType.UNSPECIFIED;
  return { type, mode: mode & 0o777, metadata: toMetadata(xattrs) };
}

/** As Go's fs.FileMode shows it: `-rw-r--r--`, `drwxr-xr-x`, `Lrwxrwxrwx`, `dtrwxrwxrwx`. */
function goPermissions({ kind, mode }: EntryInfo): string {
  const device = LETTERS[kind];
  const special = (mode & 0o4000 ? "u" : "") + (mode & 0o2000 ? "g" : "");
  const sticky = mode & 0o1000 ? "t" : "";
  // A character device's letter comes behind the others'.
  const letters = device === "Dc" ? `D${special}c${sticky}` : device + special + sticky;
  const bits = [..."rwxrwxrwx"].map((letter, index) => (mode & (0o400 >> index) ? letter : "-")).join("");
  return (letters || "-") + bits;
}
