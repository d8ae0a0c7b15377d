import { createHash, type Hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { PicodError } from "../../errors/picod-error.js";

/** Those of RFC 9530 that are not broken, as Node names them. */
const ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ["sha-256", "sha256"],
  ["sha-512", "sha512"],
]);
const DIGEST = /^([\w.*-]+) *= *:([A-Za-z0-9+/=]*):(?: *;.*)?$/;

/** Verifies a body against the digests that were announced for it. */
export class AnnouncedDigests {
  readonly #announced: readonly { readonly field: string; readonly hash: Hash; readonly digest: Buffer }[];

  /**
   * Of a request `Content-Digest` and `Repr-Digest` are about the same bytes: the body as it is sent. Algorithms that are not known are
   * passed over. @throws INVALID_ARGUMENT when a field is malformed.
   */
  constructor(headers: IncomingHttpHeaders) {
    this.#announced = ["content-digest", "repr-digest"].flatMap((field) =>
      items(headers[field]).flatMap((item) => {
        const [, algorithm = "", base64 = ""] = DIGEST.exec(item) ?? [];
        if (algorithm === "") throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: expected sha-256=:<base64>:`);
        const known = ALGORITHMS.get(algorithm.toLowerCase());
        if (known === undefined) return [];
        return [{ field, hash: createHash(known), digest: Buffer.from(base64, "base64") }];
      }),
    );
  }

  /** Passes a body on and takes note of it. */
  async *watch(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      for (const { hash } of this.#announced) hash.update(chunk);
      yield chunk;
    }
  }

  /** After the end of the body. @throws CHECKSUM_MISMATCH. */
  verify(): void {
    const wrong = this.#announced.find(({ hash, digest }) => !hash.digest().equals(digest));
    if (wrong === undefined) return;
    throw new PicodError("CHECKSUM_MISMATCH", `the body does not have the announced ${wrong.field}`);
  }
}

/** Whether `Want-Repr-Digest` asks for a SHA-256. */
export function wantsSha256(header: string | string[] | undefined): boolean {
  return items(header).some((item) => /^sha-256( *= *0*[1-9]\d*)?( *;.*)?$/i.test(item));
}

/** `sha-256=:<base64>:` */
export function sha256Field(digest: Buffer): string {
  return `sha-256=:${digest.toString("base64")}:`;
}

function items(header: string | string[] | undefined): string[] {
  return [header ?? []]
    .flat()
    .flatMap((line) => line.split(","))
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
