import { BLOCK_BYTES, checksumOf, FIELD } from "./tar-block.js";

/** The fields of one header block. Names are bytes, one character each. */
export interface TarHeader {
  readonly name: string;
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly modifiedTimeSeconds: number;
  readonly linkName: string;
  readonly userName: string;
  readonly groupName: string;
}

type Field = readonly [offset: number, length: number];

const ZEROS = Buffer.alloc(BLOCK_BYTES);

export function isZeroBlock(block: Buffer): boolean {
  return block.equals(ZEROS);
}

/** Some old programs added the bytes as signed ones. */
export function hasRightChecksum(block: Buffer): boolean {
  const expected = numberAt(block, FIELD.checksum);
  const sum = checksumOf(block);
  if (sum === expected) return true;
  const [offset, length] = FIELD.checksum;
  let high = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) {
    if ((at < offset || at >= offset + length) && (block[at] as number) > 0x7f) high++;
  }
  return sum - 256 * high === expected;
}

/** ustar, PAX, GNU or the format of Unix V7. A number that is malformed or too large to count with is NaN. */
export function decodeTarHeader(block: Buffer): TarHeader {
  const magic = textAt(block, FIELD.magic);
  const isGnu = magic.startsWith("ustar ");
  const hasNames = isGnu || magic.startsWith("ustar");
  const prefix = hasNames && !isGnu ? textAt(block, FIELD.prefix) : "";
  const name = textAt(block, FIELD.name);
  const type = String.fromCharCode(block[FIELD.type[0]] as number);
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    type: type === "\0" ? "0" : type,
    mode: numberAt(block, FIELD.mode) & 0o7777,
    uid: numberAt(block, FIELD.uid),
    gid: numberAt(block, FIELD.gid),
    size: numberAt(block, FIELD.size),
    modifiedTimeSeconds: numberAt(block, FIELD.mtime),
    linkName: textAt(block, FIELD.linkName),
    userName: hasNames ? textAt(block, FIELD.userName) : "",
    groupName: hasNames ? textAt(block, FIELD.groupName) : "",
  };
}

/** Up to a NUL, or the whole field. */
function textAt(block: Buffer, [offset, length]: Field): string {
  const end = block.indexOf(0, offset);
  return block.toString("latin1", offset, end < 0 || end > offset + length ? offset + length : end);
}

/** Octal digits between spaces and NULs; or, where those do not suffice, two's complement behind a set first bit. */
export function numberAt(block: Buffer, [offset, length]: Field): number {
  const first = block[offset] as number;
  if (first & 0x80) {
    let value = first & 0x40 ? first - 0x100 : first & 0x7f;
    for (let at = offset + 1; at < offset + length; at++) value = value * 256 + (block[at] as number);
    return Number.isSafeInteger(value) ? value : Number.NaN;
  }
  const digits = block
    .toString("latin1", offset, offset + length)
    .replace(/^ +/, "")
    .replace(/[ \0].*$/s, "");
  if (digits === "") return 0;
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
}
