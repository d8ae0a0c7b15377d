import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Connection } from "../transport.js";

/**
 * The SHA-256 of a file of the sandbox, hexadecimal, by its absolute path; undefined when the daemon does not say, as of a file that changes.
 * The content stays there: this is `HEAD /v1/files/…` with `Want-Repr-Digest`.
 */
export async function remoteSha256(
  { url, headers, agent }: Connection,
  path: string,
  user: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  // Behind %2F it is absolute, with and without `--root`.
  const address = new URL(`/v1/files/${path.split("/").map(encodeURIComponent).join("%2F")}`, url);
  if (user !== "") address.searchParams.set("user", user);
  const want = { ...headers(), "want-repr-digest": "sha-256=1" };
  try {
    const { statusCode = 0, headers: answered } = await head(address, { headers: want, agent, signal });
    if (statusCode >= 500) throw new ConnectError(`${statusCode} of ${address.pathname}`, Code.Unavailable);
    const digest = /sha-256=:([^:]+):/.exec(answered["repr-digest"]?.toString() ?? "")?.[1];
    return digest === undefined ? undefined : Buffer.from(digest, "base64").toString("hex");
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError("the connection broke", Code.Unavailable, undefined, undefined, error);
  }
}

async function head(address: URL, options: RequestOptions): Promise<IncomingMessage> {
  const request = (address.protocol === "https:" ? httpsRequest : httpRequest)(address, { ...options, method: "HEAD" });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response.resume();
}
