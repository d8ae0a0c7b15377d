import { Code, ConnectError } from "@connectrpc/connect";
import type { Connection } from "../transport.js";

/**
 * The SHA-256 of a file of the sandbox, hexadecimal, by its absolute path; undefined when the daemon does not say, as of a file that changes.
 * The content stays there: this is `HEAD /v1/files/…` with `Want-Repr-Digest`.
 */
export async function remoteSha256(
  { url, headers }: Connection,
  path: string,
  user: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  // Behind %2F it is absolute, with and without `--root`.
  const address = new URL(`/v1/files/${path.split("/").map(encodeURIComponent).join("%2F")}`, url);
  if (user !== "") address.searchParams.set("user", user);
  const want = { ...headers(), "want-repr-digest": "sha-256=1" };
  try {
    const response = await fetch(address, { method: "HEAD", headers: want, ...(signal === undefined ? {} : { signal }) });
    if (response.status >= 500) throw new ConnectError(`${response.status} of ${address.pathname}`, Code.Unavailable);
    const digest = /sha-256=:([^:]+):/.exec(response.headers.get("repr-digest") ?? "")?.[1];
    return digest === undefined ? undefined : Buffer.from(digest, "base64").toString("hex");
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError("the connection broke", Code.Unavailable, undefined, undefined, error);
  }
}
