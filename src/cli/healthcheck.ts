import { get } from "node:http";
import type { Config } from "../config.js";

const TIMEOUT_MS = 3_000;
/** Listening there is listening everywhere, but nobody can be reached there by that name on every system. */
const LOOPBACK_OF_ANY: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Resolves when the daemon of that configuration says that it lives. @throws Error saying what happened instead. */
export function healthcheck(config: Pick<Config, "host" | "port">): Promise<void> {
  const { port } = config;
  const host = LOOPBACK_OF_ANY[config.host] ?? config.host;
  const subject = `healthcheck of ${host} port ${port}`;
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = get({ host, port, path: "/healthz", agent: false, signal }, (response) => {
      request.destroy();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`${subject}: /healthz answered ${response.statusCode}`));
    });
    request.on("error", (error) => {
      reject(new Error(`${subject}: ${signal.aborted ? `no answer within ${TIMEOUT_MS} ms` : error.message}`, { cause: error }));
    });
  });
}
