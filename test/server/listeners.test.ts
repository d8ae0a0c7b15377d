import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";

const LISTING = { authorization: `Bearer ${TOKEN}` };

describe("further addresses", () => {
  it("serve the same, and ask for the token unless they are trusted", async () => {
    const args = ["--also-listen", "127.0.0.1:0", "--also-listen", "[::1]:0,no-auth"];
    await using daemon = await startDaemon({ args });
    const listening = await daemon.waitForLog(({ msg }) => msg === "server listening");
    const [guarded, trusted] = listening.alsoListening as string[];
    const status = async (address: string, headers = {}) => (await fetch(`http://${address}/v1/processes`, { headers })).status;
    expect(await status(`127.0.0.1:${daemon.port}`)).toBe(401);
    expect(await status(guarded ?? "")).toBe(401);
    expect(await status(guarded ?? "", LISTING)).toBe(200);
    expect(await status(trusted ?? "")).toBe(200);
    // Who brings a wrong token there is let in too: it is not looked at.
    expect(await status(trusted ?? "", { authorization: "Bearer wrong" })).toBe(200);
    const warning = await daemon.waitForLog(({ level }) => level === "warn");
    expect(warning).toMatchObject({ address: trusted, msg: expect.stringContaining("no token is asked for") });
    expect(daemon.logs.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(await daemon.stop()).toBe(0);
    for (const address of [guarded, trusted]) await expect(status(address ?? "")).rejects.toThrow();
  });

  it("name the one that cannot be listened on, and end the daemon", async () => {
    await using first = await startDaemon();
    const daemon = startDaemon({ args: ["--also-listen", `127.0.0.1:${first.port}`] });
    await expect(daemon).rejects.toThrow(
      `ended with 1\npicod: cannot listen on 127.0.0.1 port ${first.port}: address already in use`,
    );
  });
});
