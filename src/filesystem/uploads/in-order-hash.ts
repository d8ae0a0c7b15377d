import { createHash } from "node:crypto";

/** SHA-256 of a file while it arrives, as long as every byte comes right behind the one before it. */
export class InOrderHash {
  #hash: ReturnType<typeof createHash> | undefined = createHash("sha256");
  #bytes = 0;

  /** Takes what was written; anything but the next bytes ends it. */
  update(position: number, bytes: Uint8Array): void {
    if (position !== this.#bytes) this.drop();
    this.#hash?.update(bytes);
    this.#bytes += bytes.length;
  }

  drop(): void {
    this.#hash = undefined;
  }

  /** In lower-case hexadecimal; undefined when exactly so many bytes have not come in order. Can be asked for again. */
  digest(bytes: number): string | undefined {
    return bytes === this.#bytes ? this.#hash?.copy().digest("hex") : undefined;
  }
}
