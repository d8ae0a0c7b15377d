import { once } from "node:events";

const LENGTH_BYTES = 4;

/** Reads the one message that the runner sends: its length in four bytes, big-endian, then the message. */
export async function readMessage(input: NodeJS.ReadableStream): Promise<Uint8Array> {
  let received = Buffer.alloc(0);
  for await (const chunk of input) {
    received = Buffer.concat([received, chunk as Buffer]);
    if (received.length < LENGTH_BYTES) continue;
    const end = LENGTH_BYTES + received.readUInt32BE(0);
    if (received.length >= end) return received.subarray(LENGTH_BYTES, end);
  }
  throw new Error("the runner sent no whole message");
}

/** Writes a message of the same form. */
export async function writeMessage(output: NodeJS.WritableStream, message: Uint8Array): Promise<void> {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(message.length, 0);
  if (!output.write(Buffer.concat([length, message]))) await once(output, "drain");
}
