import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, parseToken } from "./token.js";

/**
 * What a metadata service wants to be asked like.
 *  - `plain`: a GET.
 *  - `imdsv2`: Amazon's, with a session token first (PUT /latest/api/token).
 *  - `gcp`: `Metadata-Flavor: Google` on the request, and checked on the response.
 *  - `azure`: `Metadata: true`.
 */
export type MetadataFlavor = "plain" | "imdsv2" | "gcp" | "azure";

export interface MetadataServiceOptions {
  readonly url: string;
  readonly flavor: MetadataFlavor;
  /** For each attempt; a hop limit that is too low shows as silence, not as a refusal. */
  readonly attemptTimeoutMs: number;
  readonly attempts: number;
  readonly retryDelayMs: number;
}

const MAX_RESPONSE_BYTES = 64 * 1024;
const SESSION_TOKEN_SECONDS = 60;
const TOO_MANY_REQUESTS = 429;

const HEADERS_OF_FLAVOR: Readonly<Record<MetadataFlavor, Record<string, string>>> = {
  plain: {},
  imdsv2: {},
  gcp: { "Metadata-Flavor": "Google" },
  azure: { Metadata: "true" },
};

/** Repeating cannot help: the answer was clear. */
class FinalAnswerError extends Error {}

/**
 * Fetches the token. No proxy, no redirect, no fallback from IMDSv2 to v1, and a short limit on everything: a metadata service is
 * next door or not there. @throws ConfigError naming the URL and the last failure.
 */
export async function fetchMetadataToken(options: MetadataServiceOptions): Promise<string> {
  const source = `metadata service ${options.url}`;
  for (let attempt = 1; ; attempt++) {
    try {
      return parseToken(await fetchOnce(options), source);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      if (error instanceof FinalAnswerError || attempt === options.attempts) {
        throw new ConfigError(`cannot read the access token from ${source}: ${(error as Error).message}`, { cause: error });
      }
      await sleep(options.retryDelayMs);
    }
  }
}

async function fetchOnce(options: MetadataServiceOptions): Promise<string> {
  const headers = { ...HEADERS_OF_FLAVOR[options.flavor] };
  if (options.flavor === "imdsv2") {
    const lifetime = { "X-aws-ec2-metadata-token-ttl-seconds": String(SESSION_TOKEN_SECONDS) };
    const session = await send("PUT", new URL("/latest/api/token", options.url), lifetime, options.attemptTimeoutMs);
    headers["X-aws-ec2-metadata-token"] = session.body.trim();
  }
  const response = await send("GET", new URL(options.url), headers, options.attemptTimeoutMs);
  if (options.flavor === "gcp" && response.flavor !== "Google") {
    throw new FinalAnswerError("the answer has no Metadata-Flavor: Google header");
  }
  return response.body;
}

interface MetadataResponse {
  readonly body: string;
  readonly flavor: string | undefined;
}

function send(method: string, url: URL, headers: Record<string, string>, timeoutMs: number): Promise<MetadataResponse> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const fail = (error: Error) =>
      reject(signal.aborted ? new Error(`no answer to ${method} ${url.pathname} within ${timeoutMs} ms`) : error);
    const outgoing = request(url, { method, headers, agent: false, signal }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_RESPONSE_BYTES)
          return outgoing.destroy(new FinalAnswerError(`the answer is larger than ${MAX_RESPONSE_BYTES} bytes`));
        return chunks.push(chunk);
      });
      response.on("error", fail);
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        const { "metadata-flavor": flavor } = response.headers;
        if (status === 200) return resolve({ body: Buffer.concat(chunks).toString("utf8"), flavor: flavor?.toString() });
        const message = `${method} ${url.pathname} answered ${status}`;
        const mayPass = status >= 500 || status === TOO_MANY_REQUESTS;
        return reject(mayPass ? new Error(message) : new FinalAnswerError(message));
      });
    });
    outgoing.on("error", fail);
    outgoing.end();
  });
}
