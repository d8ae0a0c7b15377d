import { Sandbox } from "e2b";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

/** E2B's client of the daemon at this address. */
export const sandboxAt = (sandboxUrl: string, envdAccessToken?: string) =>
  new Sandbox({
    sandboxId: "sandbox",
    sandboxUrl,
    envdVersion: "0.6.13",
    debug: true,
    ...(envdAccessToken !== undefined && { envdAccessToken }),
  });

/** A daemon as E2B's client finds it in debug mode. Shells read no profile of this machine, as their home is an empty directory. */
export async function withSandbox(user: string, use: (sandbox: Sandbox, home: string) => Promise<void>): Promise<void> {
  using home = temporaryDirectory();
  const args = ["--insecure-no-auth", "--envd-user", user, "--env", `HOME=${home.path}`];
  await using daemon = await startDaemon({ args, env: {} });
  await use(sandboxAt(daemon.url), home.path);
}

/** A daemon with a token of its own, which was told another one for E2B's clients. */
export async function withSecuredSandbox(use: (sandbox: Sandbox, home: string, url: string) => Promise<void>): Promise<void> {
  using home = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--envd-user", "root", "--env", `HOME=${home.path}`] });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const { status } = await fetch(`${daemon.url}/init`, { method: "POST", headers, body: '{"accessToken":"theirs"}' });
  if (status !== 204) throw new Error(`/init answered ${status}`);
  await use(sandboxAt(daemon.url, "theirs"), home.path, daemon.url);
}
