import { fstatSync, ftruncate, read, write, writeSync } from "node:fs";
import { promisify } from "node:util";

const COPY_BYTES = 256 * 1024;

/** Loops because write(2) on a nearly full disk takes a part without an error; the next call has it. `onWritten` counts. */
export async function writeAll(
  fd: number,
  chunk: Uint8Array,
  position: number,
  onWritten?: (bytes: number) => void,
): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    const written = await writeOnce(fd, chunk, done, position + done);
    onWritten?.(written);
    done += written;
  }
}

/** The same at once: for a small chunk the way to a thread and back is most of the cost. */
export function writeAllNow(fd: number, chunk: Uint8Array, position: number, onWritten?: (bytes: number) => void): void {
  for (let done = 0; done < chunk.length; ) {
    const written = writeSync(fd, chunk, done, chunk.length - done, position + done);
    onWritten?.(written);
    done += written;
  }
}

function writeOnce(fd: number, chunk: Uint8Array, from: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, chunk, from, chunk.length - from, position, (error, written) => (error ? reject(error) : resolve(written)));
  });
}

/** Copies the first bytes of one descriptor over what another has, and cuts off what a file has beyond them. */
export async function copyOver(fromFd: number, toFd: number, bytes: number): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(COPY_BYTES);
  for (let position = 0; position < bytes; ) {
    const { bytesRead } = await promisify(read)(fromFd, buffer, 0, Math.min(buffer.length, bytes - position), position);
    if (bytesRead === 0) break;
    await writeAll(toFd, buffer.subarray(0, bytesRead), position);
    position += bytesRead;
  }
  if (fstatSync(toFd).isFile()) await promisify(ftruncate)(toFd, bytes);
}
