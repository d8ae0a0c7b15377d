import { createCipheriv, createHash } from "node:crypto";

/** The name of a file whose content follows from its name: whoever finds the file can tell whether it is whole. */
export const nameOf = (bytes: number, what: string): string => `${bytes}-${what}`;

export function contentOf(name: string): Buffer {
  const key = createHash("sha256").update(name).digest();
  const stream = createCipheriv("aes-128-ctr", key.subarray(0, 16), key.subarray(16));
  return stream.update(Buffer.alloc(Number.parseInt(name, 10)));
}

export const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");
