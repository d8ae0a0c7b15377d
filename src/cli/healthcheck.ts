import { get as getCleartext } from "node:http";
import type { Config } from "../config.js";

const TIMEOUT_MS = 3_000;
/** Listening there is listening everywhere, but nobody can be reached there by that name on every system. */
const LOOPBACK_OF_ANY: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Resolves when the daemon of that configuration says that it lives. @throws Error saying what happened instead. */
export async function healthcheck(config: Pick<Config, "host" | "port" | "tlsCert">): Promise<void> {
  const { port } = config;
  const host = LOOPBACK_OF_ANY[config.host] ?? config.host;
  const subject = `healthcheck of ${host} port ${port}`;
  const get = config.tlsCert === undefined ? getCleartext : (await import("node:https")).get;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // Nothing is told and nothing secret is asked; the certificate has the name by which others know this machine.
    const options = { host, port, path: "/healthz", agent: false, signal, rejectUnauthorized: false } as const;
    const request = get(options, (response) => {
      request.destroy();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`${subject}: /healthz answered ${response.statusCode}`));
    });
    request.on("error", (error) => {
      reject(new Error(`${subject}: ${signal.aborted ? `no answer within ${TIMEOUT_MS} ms` : error.message}`, { cause: error }));
    });
  });
}
