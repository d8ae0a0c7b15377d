import { get } from "node:http";

const TIMEOUT_MS = 3_000;

/** Resolves when the daemon on that port says that it lives. @throws Error saying what it answered instead. */
export function healthcheck(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = get({ host: "127.0.0.1", port, path: "/healthz", agent: false, signal }, (response) => {
      response.resume();
      if (response.statusCode === 200) response.on("end", resolve);
      else reject(new Error(`http://127.0.0.1:${port}/healthz answered ${response.statusCode}`));
    });
    request.on("error", reject);
  });
}
