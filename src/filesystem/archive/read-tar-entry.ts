import { decodePath } from "../../os/path-bytes.js";
import type { ArchiveInput, UnpackSteps } from "./archive-input.js";
import { decodeTarHeader, hasRightChecksum, isZeroBlock, type TarHeader } from "./decode-tar-header.js";
import { NO_XATTRS, type UserXattrs } from "./encode-tar-header.js";
import { invalidArchive } from "./invalid-archive.js";
import { decodePaxRecords, type PaxRecords, unescapeXattrName, XATTR_KEY } from "./pax-records.js";
import { assertConsistent, parsePaxMap, readGnuMap, readPaxMap, type SparseMap } from "./sparse-map.js";
import { BLOCK_BYTES, paddingAfter, TYPE } from "./tar-block.js";
import type { UnpackLimits } from "./unpack-limits.js";

/** What an archive says about one entry; its content is what comes next in the input. Names are decoded, see decodePath. */
export interface ArchivedEntry {
  readonly name: string;
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Empty where the archive has none. */
  readonly userName: string;
  readonly groupName: string;
  readonly modifiedTimeNs: bigint;
  readonly linkName: string;
  readonly xattrs: UserXattrs;
  /** Bytes of content in the input, and of zeros after it. */
  readonly storedBytes: number;
  readonly padding: number;
  readonly sparse: SparseMap | undefined;
}

const NS_PER_SECOND = 1_000_000_000n;
/** What a global header may set for all that follow: the rest is about single files. */
const GLOBAL_KEYS = ["uid", "gid", "uname", "gname", "mtime"];
const LISTED_EXTENT = ["GNU.sparse.offset", "GNU.sparse.numbytes"];
const WITH_CONTENT: readonly string[] = [TYPE.file, TYPE.contiguousFile, TYPE.gnuSparse, TYPE.gnuDumpDirectory];

/** Reads entries one after the other, with what extended headers and long names say about them. */
export class TarEntryReader {
  readonly #input: ArchiveInput;
  readonly #limits: UnpackLimits;
  readonly #globals: PaxRecords = new Map();
  #lastName = "its beginning";

  constructor(input: ArchiveInput, limits: UnpackLimits) {
    this.#input = input;
    this.#limits = limits;
  }

  /** The entry that was read last, for messages. */
  get lastName(): string {
    return this.#lastName;
  }

  /** The next entry; undefined at the end of the archive. @throws INVALID_ARCHIVE, ARCHIVE_LIMIT_REACHED. */
  *next(): UnpackSteps<ArchivedEntry | undefined> {
    const records: PaxRecords = new Map(this.#globals);
    for (;;) {
      const block = yield* this.#input.block();
      if (isZeroBlock(block)) return undefined;
      if (!hasRightChecksum(block)) throw invalidArchive(`after ${this.#lastName}`, "the checksum of its header is wrong");
      const header = decodeTarHeader(block);
      const name = decodeBytes(records.get("path") ?? header.name);
      if (!(header.size >= 0)) throw invalidArchive(name, "its size is malformed");
      switch (header.type) {
        case TYPE.pax:
        case "X":
          this.#addRecords(records, name, yield* this.#readExtended(name, header.size), () => true);
          break;
        case TYPE.globalPax:
          this.#addRecords(this.#globals, name, yield* this.#readExtended(name, header.size), (key) => GLOBAL_KEYS.includes(key));
          for (const [key, value] of this.#globals) if (!records.has(key)) records.set(key, value);
          break;
        case TYPE.gnuLongName:
          records.set("path", untilNul(yield* this.#readExtended(name, header.size)));
          break;
        case TYPE.gnuLongLink:
          records.set("linkpath", untilNul(yield* this.#readExtended(name, header.size)));
          break;
        case TYPE.gnuVolume:
          yield* this.#readExtended(name, header.size);
          break;
        default:
          return yield* this.#entry(header, block, records);
      }
      yield undefined;
    }
  }

  *#entry(header: TarHeader, block: Buffer, records: PaxRecords): UnpackSteps<ArchivedEntry> {
    const name = decodeBytes(records.get("GNU.sparse.name") ?? records.get("path") ?? header.name);
    this.#lastName = name;
    const number = (key: string, fallback: number) => numberOf(name, key, records.get(key), fallback);
    const size = WITH_CONTENT.includes(header.type) ? number("size", header.size) : 0;
    const entry = {
      name,
      type: header.type,
      mode: header.mode,
      uid: number("uid", header.uid),
      gid: number("gid", header.gid),
      userName: decodeBytes(records.get("uname") ?? header.userName),
      groupName: decodeBytes(records.get("gname") ?? header.groupName),
      modifiedTimeNs: timeOf(name, records.get("mtime"), header.modifiedTimeSeconds),
      linkName: decodeBytes(records.get("linkpath") ?? header.linkName),
      xattrs: xattrsOf(records),
      padding: paddingAfter(size),
    };
    this.#limits.addEntry(name, size);
    const read = yield* this.#sparseMap(name, header.type, block, records, size);
    const storedBytes = size - (read?.mapBytes ?? 0);
    if (read !== undefined) assertConsistent(name, read, storedBytes);
    return { ...entry, storedBytes, sparse: read };
  }

  *#sparseMap(
    name: string,
    type: string,
    block: Buffer,
    records: PaxRecords,
    size: number,
  ): UnpackSteps<(SparseMap & { mapBytes?: number }) | undefined> {
    if (type === TYPE.gnuSparse) return yield* readGnuMap(name, this.#input, block);
    if (type !== TYPE.file) return undefined;
    if (records.get("GNU.sparse.major") === "1") {
      return yield* readPaxMap(name, this.#input, numberOf(name, "size", records.get("GNU.sparse.realsize"), size), size);
    }
    const map = records.get("GNU.sparse.map") ?? records.get("GNU.sparse.listed");
    if (map === undefined) return undefined;
    return parsePaxMap(name, numberOf(name, "size", records.get("GNU.sparse.size"), size), map);
  }

  /** The content of an entry that says something about the next one. */
  *#readExtended(name: string, size: number): UnpackSteps<Buffer> {
    this.#limits.addExtended(name, BLOCK_BYTES + size + paddingAfter(size));
    const body = yield* this.#input.fill(Buffer.allocUnsafe(size));
    yield* this.#input.skip(paddingAfter(size));
    return body;
  }

  #addRecords(records: PaxRecords, name: string, body: Buffer, wanted: (key: string) => boolean): void {
    const listed: string[] = [];
    const wellFormed = decodePaxRecords(body, (key, value) => {
      if (LISTED_EXTENT.includes(key)) listed.push(value);
      else if (value === "") records.delete(key);
      else if (wanted(key)) records.set(key, value);
    });
    if (!wellFormed) throw invalidArchive(name, "its extended header is malformed");
    if (listed.length > 0) records.set("GNU.sparse.listed", listed.join(","));
  }
}

function untilNul(body: Buffer): string {
  const end = body.indexOf(0);
  return body.toString("latin1", 0, end < 0 ? body.length : end);
}

function decodeBytes(bytes: string): string {
  return /^[ -~]*$/.test(bytes) ? bytes : decodePath(Buffer.from(bytes, "latin1"));
}

function numberOf(name: string, key: string, digits: string | undefined, fallback: number): number {
  const number = digits === undefined ? fallback : /^[0-9]{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(Number.isSafeInteger(number) && number >= 0)) throw invalidArchive(name, `its ${key} is malformed`);
  return number;
}

/** Seconds in decimal, perhaps with a fraction, and before 1970 with a minus. */
function timeOf(name: string, decimal: string | undefined, seconds: number): bigint {
  if (decimal === undefined && Number.isSafeInteger(seconds)) return BigInt(seconds) * NS_PER_SECOND;
  const [, minus, whole, fraction = ""] = /^(-?)([0-9]{1,15})(?:\.([0-9]*))?$/.exec(decimal ?? "") ?? [];
  if (whole === undefined) throw invalidArchive(name, "its modification time is malformed");
  const ns = BigInt(whole) * NS_PER_SECOND + BigInt(fraction.slice(0, 9).padEnd(9, "0"));
  return minus === "-" ? -ns : ns;
}

function xattrsOf(records: PaxRecords): UserXattrs {
  let xattrs: Map<string, Buffer> | undefined;
  for (const [key, value] of records) {
    if (!key.startsWith(`${XATTR_KEY}user.`)) continue;
    xattrs ??= new Map();
    xattrs.set(decodeBytes(unescapeXattrName(key.slice(XATTR_KEY.length))), Buffer.from(value, "latin1"));
  }
  return xattrs ?? NO_XATTRS;
}
