import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { describeRequirement, fulfils, SCOPES } from "../../src/auth/scopes.js";
import { registeredTools } from "../helpers/registered.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { connectMcp } from "../mcp/connect.js";

const directory = mkdtempSync(join(tmpdir(), "picod-mcp-scopes-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** One caller for each scope, whose token is its name. */
const scopesFile = join(directory, "scopes.json");
const callers = SCOPES.map((scope) => ({ name: `only-${scope}`, token: `only-${scope}`, scopes: [scope] }));
writeFileSync(scopesFile, JSON.stringify({ callers }), { mode: 0o600 });

const tools = registeredTools();

describe("a token", () => {
  it("is shown the tools of its scope, and may call no other", { timeout: 60_000 }, async () => {
    await using daemon = await startDaemon({ args: ["--scopes-file", scopesFile, "--workdir", directory] });
    for (const scope of SCOPES) {
      await using mcp = await connectMcp(daemon, { token: `only-${scope}` });
      const mayUse = tools.filter(({ requires }) => fulfils(new Set([scope]), requires)).map(({ name }) => name);
      const listed = (await mcp.client.listTools()).tools.map(({ name }) => name);
      expect.soft(listed, scope).toEqual(mayUse);
      for (const { name, requires } of tools) {
        const failure = await mcp.failure(name);
        const missing = {
          code: "permission_denied",
          reason: "SCOPE_MISSING",
          message: `${name} needs the scope ${describeRequirement(requires)}, which only-${scope} does not have`,
        };
        if (mayUse.includes(name)) expect.soft(failure, `${name} with ${scope}`).not.toMatchObject({ reason: "SCOPE_MISSING" });
        else expect.soft(failure, `${name} with ${scope}`).toMatchObject(missing);
      }
    }
  });

  it("that may not remove files, cannot do so by closing the session", async () => {
    await using daemon = await startDaemon({ args: ["--scopes-file", scopesFile, "--workdir", directory] });
    await using mcp = await connectMcp(daemon, { token: "only-process" });
    await expect(mcp.failure("sandbox_close", { remove_files: true })).resolves.toMatchObject({ reason: "SCOPE_MISSING" });
  });
});

describe("every tool", () => {
  it("says what it takes, what it returns, and what it does", () => {
    for (const { name, title, description, inputSchema, outputSchema, annotations } of tools) {
      expect.soft(name).toMatch(/^sandbox_[a-z_]+$/);
      expect.soft(title.length * description.length, name).toBeGreaterThan(0);
      expect.soft(inputSchema.additionalProperties, name).toBe(false);
      expect.soft(outputSchema.required?.length, name).toBeGreaterThan(0);
      expect.soft(annotations.readOnlyHint, name).toBeTypeOf("boolean");
    }
  });

  it("is in docs/mcp.md with its scope, what it takes and what it returns", () => {
    const file = readFileSync(join(import.meta.dirname, "../../docs/mcp.md"), "utf8");
    const listed = /<!-- tools: [\s\S]*?-->\n([\s\S]*?)<!-- \/tools -->/.exec(file)?.[1];
    const members = ({ properties, required = [] }: (typeof tools)[number]["inputSchema"]) => {
      const names = Object.keys(properties).map((name) => `${name}${required.includes(name) ? "" : "?"}`);
      return `\`{${names.join(", ")}}\``;
    };
    const rows = tools.map(({ name, requires, inputSchema, outputSchema }) => {
      const scope = requires === "any" ? "any" : `\`${describeRequirement(requires)}\``;
      return `| \`${name}\` | ${scope} | ${members(inputSchema)} | ${members(outputSchema)} |\n`;
    });
    expect(listed).toBe(`| tool | scope | takes | returns |\n|---|---|---|---|\n${rows.join("")}`);
  });
});
