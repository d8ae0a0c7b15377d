import { closeSync, constants, writeSync } from "node:fs";
import { Socket } from "node:net";
import { libc } from "./libc.js";
import { check, errnoName } from "./system-error.js";

const F_SETFL = 4;

/**
 * Writes everything to the input end of a pipe and closes it. What fits into the pipe is written at once; the rest as the reader
 * makes room. A reader that closes early is not an error: a command need not read its input. Owns the descriptor. Returns the
 * function that gives up what has not been read.
 */
export function writeAndClose(fd: number, content: Uint8Array): () => void {
  check(libc.fcntl(fd, F_SETFL, constants.O_NONBLOCK), "fcntl");
  const written = writeNow(fd, content);
  if (written === content.length) {
    closeSync(fd);
    return () => undefined;
  }
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => socket.destroy());
  socket.end(content.subarray(written));
  return () => socket.destroy();
}

/** How many bytes are done with. */
function writeNow(fd: number, content: Uint8Array): number {
  let written = 0;
  try {
    while (written < content.length) written += writeSync(fd, content, written);
  } catch (error) {
    if (errnoName(error) === "EPIPE") return content.length;
    if (errnoName(error) !== "EAGAIN") throw error;
  }
  return written;
}
