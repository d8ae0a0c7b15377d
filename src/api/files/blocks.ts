/** Joins chunks until they are so many bytes, or the last of them. Both chunks and blocks may be used again as soon as the next is asked for. */
export async function* inBlocks(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array, void, void> {
  let block: Buffer | undefined;
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes === 0 && chunk.length >= size) {
      yield chunk;
      continue;
    }
    block ??= Buffer.allocUnsafe(size);
    for (let from = 0; from < chunk.length; ) {
      const taken = Math.min(size - bytes, chunk.length - from);
      block.set(chunk.subarray(from, from + taken), bytes);
      bytes += taken;
      from += taken;
      if (bytes < size) continue;
      yield block;
      bytes = 0;
    }
  }
  if (block !== undefined && bytes > 0) yield block.subarray(0, bytes);
}
