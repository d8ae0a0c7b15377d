/** A tar archive is made of blocks of this size: headers, and content that is filled up with zeros. */
export const BLOCK_BYTES = 512;

/** Where a field of a header begins, and its length in bytes. */
type Field = readonly [offset: number, length: number];

/** ustar, POSIX.1-1988; GNU's differs from `prefix` on. */
export const FIELD = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkName: [157, 100],
  magic: [257, 8],
  userName: [265, 32],
  groupName: [297, 32],
  deviceMajor: [329, 8],
  deviceMinor: [337, 8],
  prefix: [345, 155],
} as const satisfies Record<string, Field>;

export const TYPE = {
  file: "0",
  hardLink: "1",
  symlink: "2",
  characterDevice: "3",
  blockDevice: "4",
  directory: "5",
  fifo: "6",
  contiguousFile: "7",
  pax: "x",
  globalPax: "g",
  gnuLongName: "L",
  gnuLongLink: "K",
  gnuSparse: "S",
  gnuDumpDirectory: "D",
  gnuVolume: "V",
} as const;

/** Zeros after content of that many bytes. */
export function paddingAfter(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** The sum of all bytes of a header, its checksum counted as spaces. */
export function checksumOf(block: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) sum += block[at] as number;
  const [offset, length] = FIELD.checksum;
  for (let at = offset; at < offset + length; at++) sum += 0x20 - (block[at] as number);
  return sum;
}
