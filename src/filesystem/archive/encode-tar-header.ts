import { pathBytes } from "../../os/path-bytes.js";
import { encodePaxRecords, escapeXattrName, type PaxRecords, XATTR_KEY } from "./pax-records.js";
import { BLOCK_BYTES, checksumOf, FIELD, paddingAfter, TYPE } from "./tar-block.js";

/** Extended attributes of the `user.` namespace, by decoded names. */
export type UserXattrs = ReadonlyMap<string, Buffer>;

export const NO_XATTRS: UserXattrs = new Map();

/** One entry of an archive that is written. Names are decoded, see decodePath. */
export interface TarEntry {
  /** Relative; that of a directory ends with a slash. */
  readonly path: string;
  /** One of TYPE. */
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Empty where the owner or the group has none. */
  readonly userName: string;
  readonly groupName: string;
  readonly modifiedTimeNs: bigint;
  /** Bytes of content in the archive. */
  readonly storedBytes: number;
  /** What a link points to. */
  readonly linkName: string;
  readonly device?: { readonly major: number; readonly minor: number };
  readonly xattrs: UserXattrs;
  /** Bytes of a sparse file with its holes; its content in the archive begins with a map. */
  readonly sparseSize?: number;
}

const NS_PER_SECOND = 1_000_000_000n;
const MAX_ID = 0o7777777;
const MAX_NUMBER = 0o77777777777;
/** What a field of ustar can say by itself. */
const PRINTABLE_ASCII = /^[ -~]*$/;

/** The blocks before the content: a header, and before that an extended one with all that a header cannot say. */
export function encodeTarHeader(entry: TarEntry): Buffer {
  const records: PaxRecords = new Map();
  const block = Buffer.alloc(BLOCK_BYTES);
  const sparse = entry.sparseSize !== undefined;
  if (sparse) {
    records.set("GNU.sparse.major", "1").set("GNU.sparse.minor", "0");
    records.set("GNU.sparse.name", bytesOf(entry.path)).set("GNU.sparse.realsize", String(entry.sparseSize));
  }
  putPath(block, sparse ? sparsePlaceholder(entry.path) : entry.path, sparse ? undefined : records);
  putText(block, FIELD.linkName, entry.linkName, "linkpath", records);
  putNumber(block, FIELD.uid, entry.uid, MAX_ID, "uid", records);
  putNumber(block, FIELD.gid, entry.gid, MAX_ID, "gid", records);
  putNumber(block, FIELD.size, entry.storedBytes, MAX_NUMBER, "size", records);
  putTime(block, entry.modifiedTimeNs, records);
  putText(block, FIELD.userName, entry.userName, "uname", records);
  putText(block, FIELD.groupName, entry.groupName, "gname", records);
  putOctal(block, FIELD.mode, entry.mode);
  putOctal(block, FIELD.deviceMajor, entry.device?.major ?? 0);
  putOctal(block, FIELD.deviceMinor, entry.device?.minor ?? 0);
  for (const [name, value] of entry.xattrs) records.set(XATTR_KEY + escapeXattrName(bytesOf(name)), value.toString("latin1"));
  seal(block, entry.type);
  return records.size === 0 ? block : Buffer.concat([...extendedHeader(entry.path, records), block]);
}

function extendedHeader(path: string, records: PaxRecords): Buffer[] {
  const body = encodePaxRecords(records);
  const block = Buffer.alloc(BLOCK_BYTES);
  putPath(block, `PaxHeaders/${path.replace(/\/$/, "")}`, undefined);
  putOctal(block, FIELD.mode, 0o644);
  for (const field of [FIELD.uid, FIELD.gid, FIELD.mtime, FIELD.deviceMajor, FIELD.deviceMinor]) putOctal(block, field, 0);
  putOctal(block, FIELD.size, body.length);
  seal(block, TYPE.pax);
  return [block, body, Buffer.alloc(paddingAfter(body.length))];
}

function seal(block: Buffer, type: string): void {
  block.write(type, FIELD.type[0], "latin1");
  block.write("ustar\x0000", FIELD.magic[0], "latin1");
  block.write(`${checksumOf(block).toString(8).padStart(6, "0")}\0 `, FIELD.checksum[0], "latin1");
}

/** What readers that do not know sparse files call it, so that nobody takes the map for content. */
function sparsePlaceholder(path: string): string {
  const slash = path.lastIndexOf("/") + 1;
  return `${path.slice(0, slash)}GNUSparseFile.0/${path.slice(slash)}`;
}

/**
 * A name that is not UTF-8 goes into the header as it is, where it fits: an extended header promises UTF-8, but it is the only place
 * for the longer ones, and readers take the bytes from there too.
 */
function putPath(block: Buffer, path: string, records: PaxRecords | undefined): void {
  const bytes = bytesOf(path);
  const [offset, length] = FIELD.name;
  const split = bytes.length > length ? splitPath(bytes) : -1;
  if (split > 0 && PRINTABLE_ASCII.test(path)) {
    block.write(bytes.slice(0, split), FIELD.prefix[0], "latin1");
    block.write(bytes.slice(split + 1), offset, "latin1");
    return;
  }
  block.write(bytes.slice(0, length), offset, "latin1");
  if (bytes.length > length || !saysItself(path, bytes)) records?.set("path", bytes);
}

/** The slash between a prefix and a name that both fit; -1 where there is none. */
function splitPath(bytes: string): number {
  const split = bytes.indexOf("/", bytes.length - FIELD.name[1] - 1);
  return split > 0 && split <= FIELD.prefix[1] && split < bytes.length - 1 ? split : -1;
}

function putText(
  block: Buffer,
  [offset, length]: readonly [number, number],
  text: string,
  key: string,
  records: PaxRecords,
): void {
  if (text === "") return;
  const bytes = bytesOf(text);
  block.write(bytes.slice(0, length), offset, "latin1");
  if (bytes.length > length || !saysItself(text, bytes)) records.set(key, bytes);
}

/** Text is ASCII, or not UTF-8 at all. */
function saysItself(text: string, bytes: string): boolean {
  return PRINTABLE_ASCII.test(text) || Buffer.from(bytes, "latin1").toString() !== text;
}

function putNumber(
  block: Buffer,
  field: readonly [number, number],
  value: number,
  max: number,
  key: string,
  records: PaxRecords,
): void {
  putOctal(block, field, value <= max ? value : 0);
  if (value > max) records.set(key, String(value));
}

function putOctal(block: Buffer, [offset, length]: readonly [number, number], value: number): void {
  block.write(value.toString(8).padStart(length - 1, "0"), offset, "latin1");
}

function putTime(block: Buffer, timeNs: bigint, records: PaxRecords): void {
  const fits = timeNs >= 0n && timeNs <= BigInt(MAX_NUMBER) * NS_PER_SECOND;
  putOctal(block, FIELD.mtime, fits ? Number(timeNs / NS_PER_SECOND) : 0);
  if (!fits || timeNs % NS_PER_SECOND !== 0n) records.set("mtime", decimalSeconds(timeNs));
}

function decimalSeconds(timeNs: bigint): string {
  const positive = timeNs < 0n ? -timeNs : timeNs;
  const fraction = String(positive % NS_PER_SECOND).padStart(9, "0");
  return `${timeNs < 0n ? "-" : ""}${positive / NS_PER_SECOND}.${fraction}`;
}

/** One character for each byte. */
function bytesOf(text: string): string {
  return PRINTABLE_ASCII.test(text) ? text : pathBytes(text).toString("latin1");
}
