import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, it } from "vitest";
import { PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const EXAMPLES = join(import.meta.dirname, "../../examples/mcp");

type ServerEntry =
  | { readonly url: string; readonly type?: "http"; readonly headers: Readonly<Record<string, string>> }
  | { readonly command: string; readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };

/** What the programs put in the place of variables: `${NAME}` and `${NAME:-default}`, `${env:NAME}`, `${input:id}`. */
function expand(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(?:env:|input:)?([A-Za-z_-]+?)(?::-([^}]*))?\}/g, (_all, name: string, otherwise?: string) => {
    const value = values[name] ?? otherwise;
    if (value === undefined) throw new Error(`nothing says what ${name} is`);
    return value;
  });
}

it("the configurations of agent programs lead to the tools", { timeout: 60_000 }, async () => {
  using directory = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
  writeFileSync(`${directory.path}/token`, TOKEN, { mode: 0o600 });
  const values = { PICOD_ACCESS_TOKEN: TOKEN, "picod-token": TOKEN };
  const here = (text: string) =>
    expand(text, values)
      .replace("49983", String(daemon.port))
      .replace("/etc/picod/client-token", `${directory.path}/token`)
      .replace("/workspace", directory.path);
  const files = readdirSync(EXAMPLES).filter((file) => file.endsWith(".json"));
  expect(files).toHaveLength(5);
  for (const file of files) {
    const { mcpServers, servers = mcpServers } = JSON.parse(here(readFileSync(join(EXAMPLES, file), "utf8")));
    const entry = servers.sandbox as ServerEntry;
    const transport =
      "url" in entry
        ? new StreamableHTTPClientTransport(new URL(entry.url), { requestInit: { headers: entry.headers } })
        : new StdioClientTransport({ command: PICOD, args: [...entry.args], env: { ...entry.env }, stderr: "ignore" });
    const client = new Client({ name: "test", version: "0" });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    expect.soft((await client.listTools()).tools.length, file).toBe(14);
    await client.close();
  }
});
