/** Of the memory that the cgroup allows, for each kind of what is kept: a small sandbox keeps less. */
const SHARE_OF_MEMORY = 1 / 8;

/** So many bytes, or the share of the memory where that is less. Without a limit it is a number beyond every machine's. */
export function withinMemory(bytes: number): number {
  const allowed = process.constrainedMemory();
  return allowed > 0 ? Math.min(bytes, Math.floor(allowed * SHARE_OF_MEMORY)) : bytes;
}
