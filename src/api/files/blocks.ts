/** Joins chunks until they are so many bytes, or the last of them. They must not be used again by whoever makes them. */
export async function* inBlocks(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array, void, void> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    waiting.push(chunk);
    bytes += chunk.length;
    if (bytes < size) continue;
    yield joined(waiting);
    [waiting, bytes] = [[], 0];
  }
  if (bytes > 0) yield joined(waiting);
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}
