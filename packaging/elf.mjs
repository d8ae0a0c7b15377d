const HEADER = {
  segmentOffset: 32,
  sectionOffset: 40,
  segmentSize: 54,
  segmentCount: 56,
  sectionSize: 58,
  sectionCount: 60,
  sectionNames: 62,
};
const SEGMENT = { type: 0, offset: 8, fileSize: 32 };
const LOAD = 1;

/** A program without what only debuggers read, the symbol tables at its end: a sixth of Node. See elf(5). */
export function withoutSections(program) {
  if (program.readUInt32BE(0) !== 0x7f454c46) throw new Error("not an ELF file");
  const first = Number(program.readBigUInt64LE(HEADER.segmentOffset));
  const size = program.readUInt16LE(HEADER.segmentSize);
  let end = 0;
  for (let i = 0; i < program.readUInt16LE(HEADER.segmentCount); i++) {
    const segment = first + i * size;
    if (program.readUInt32LE(segment + SEGMENT.type) !== LOAD) continue;
    const fileEnd = program.readBigUInt64LE(segment + SEGMENT.offset) + program.readBigUInt64LE(segment + SEGMENT.fileSize);
    end = Math.max(end, Number(fileEnd));
  }
  const kept = Buffer.from(program.subarray(0, end));
  kept.writeBigUInt64LE(0n, HEADER.sectionOffset);
  for (const field of ["sectionSize", "sectionCount", "sectionNames"]) kept.writeUInt16LE(0, HEADER[field]);
  return kept;
}
