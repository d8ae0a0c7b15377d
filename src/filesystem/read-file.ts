import { createHash } from "node:crypto";
import { PicodError } from "../errors/picod-error.js";
import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { FileReader } from "./file-reader.js";

export interface ReadFileOptions {
  /** First byte; 0 by default. */
  readonly offset?: bigint | undefined;
  /** Bytes at most; to the end of the file by default. */
  readonly length?: bigint | undefined;
  readonly checksum?: boolean;
  /** The file must have this etag, from the first byte to the last; empty: any. */
  readonly ifEtag?: string;
}

export type ReadFileEvent =
  | { readonly kind: "opened"; readonly entry: EntryInfo }
  /** Valid until the next event is asked for: the buffer is used again. */
  | { readonly kind: "chunk"; readonly chunk: Uint8Array }
  /** `sha256`, and `etag` when all had been read, are empty unless a checksum was asked for. */
  | { readonly kind: "summary"; readonly bytes: bigint; readonly sha256: string; readonly etag: string };

/**
 * Reads a file: `opened`, chunks, `summary`.
 * @throws NOT_A_REGULAR_FILE, PRECONDITION_FAILED, OFFSET_BEYOND_END, FILE_SHRANK, errno of open(2) and read(2).
 */
export async function* readFile(access: Access, path: string, options: ReadFileOptions = {}): AsyncGenerator<ReadFileEvent> {
  const reader = new FileReader(access, path);
  try {
    assertEtag(path, reader.entry.etag, options.ifEtag ?? "");
    const span = reader.span(options.offset, options.length);
    yield { kind: "opened", entry: reader.entry };
    const hash = options.checksum ? createHash("sha256") : undefined;
    let bytes = 0;
    for await (const chunk of reader.read(span)) {
      bytes += chunk.length;
      hash?.update(chunk);
      yield { kind: "chunk", chunk };
    }
    const etag = options.checksum || options.ifEtag ? reader.currentEtag() : "";
    assertEtag(path, etag, options.ifEtag ?? "");
    yield { kind: "summary", bytes: BigInt(bytes), sha256: hash?.digest("hex") ?? "", etag };
  } finally {
    reader.close();
  }
}

function assertEtag(path: string, etag: string, expected: string): void {
  if (expected === "" || expected === etag) return;
  throw new PicodError("PRECONDITION_FAILED", `cannot read ${path}: its etag is ${etag}`, { path, etag });
}
