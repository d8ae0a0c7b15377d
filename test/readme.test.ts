import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createProgram } from "../src/cli/program.js";
import { ACCESS_TOKEN, SETTINGS } from "../src/config.js";
import { codeName } from "../src/errors/code-name.js";
import { CODE_OF_REASON } from "../src/errors/to-connect-error.js";
import { example } from "./helpers/example.js";
import { startDaemon, TOKEN } from "./helpers/start-daemon.js";

const root = join(import.meta.dirname, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");

function section(name: string): string {
  return new RegExp(`<!-- ${name}: [\\s\\S]*?-->\\n([\\s\\S]*?)<!-- /${name} -->`).exec(readme)?.[1] ?? "";
}

describe("the README", () => {
  it("lists every flag, with variable, default and meaning", () => {
    const rows = Object.values(SETTINGS).map(({ flag, env, defaultText, description }) => {
      return `| \`${flag}\` | \`${env}\` | ${defaultText === "" ? "" : `\`${defaultText}\``} | ${description} |\n`;
    });
    const token = `| \`${ACCESS_TOKEN.flag}\` | \`${ACCESS_TOKEN.env}\` |  | ${ACCESS_TOKEN.description} |\n`;
    expect(section("flags")).toBe(`| flag | variable | default | |\n|---|---|---|---|\n${token}${rows.join("")}`);
    const none = () => undefined;
    const program = createProgram({
      serve: async () => undefined,
      healthcheck: async () => undefined,
      auditVerify: none,
      mcp: async () => undefined,
      version: none,
      licenses: none,
    });
    const known = [ACCESS_TOKEN.flag, ...Object.values(SETTINGS).map(({ flag }) => flag), "--version", "--json"];
    expect(program.options.map((option) => option.flags).sort()).toEqual(known.sort());
  });

  it("lists every reason with its code", () => {
    const rows = Object.entries(CODE_OF_REASON).map(([reason, code]) => `| \`${reason}\` | ${codeName(code).toUpperCase()} |\n`);
    expect(section("errors")).toBe(`| reason | code |\n|---|---|\n${rows.join("")}`);
  });

  it("names only files that exist", () => {
    for (const [, path = ""] of readme.matchAll(/\]\(([^):]+)\)/g)) expect(existsSync(join(root, path)), path).toBe(true);
  });

  it("has examples that work", async () => {
    await using daemon = await startDaemon();
    const run = (file: string, ...args: string[]) => {
      const env = { PATH: process.env.PATH, PICOD_ACCESS_TOKEN: TOKEN };
      return execFileSync(file, args, { env, encoding: "utf8", cwd: root });
    };
    const here = (text: string) => text.replaceAll("49983", String(daemon.port));
    expect(here(example("README.md", "start"))).toContain("dist/picod --port");
    const [executed, described, health] = run("sh", "-ec", here(example("README.md", "curl"))).split(/(?<=\})(?=\{)/);
    expect(JSON.parse(executed ?? "")).toMatchObject({ stdout: "hello from root\n" });
    expect(JSON.parse(described ?? "")).toMatchObject({ entry: { path: "/etc/hostname", owner: "root" } });
    expect(JSON.parse(health ?? "")).toMatchObject({ status: "ok", service: "PicoD" });
    const venv = run("sh", "scripts/python-venv.sh").trim();
    expect(run(`${venv}/bin/python`, "-c", here(example("README.md", "python-processes")))).toBe(
      "line 1\nline 2\nline 3\nexit code 0\n",
    );
    expect(run(`${venv}/bin/python`, "-c", here(example("README.md", "python")))).toMatch(
      /^Linux [\s\S]*a,b\n1,2[\s\S]*exit code 3\n$/,
    );
    // Below the repository, so that it finds the package by its name.
    mkdirSync(join(root, "coverage"), { recursive: true });
    const file = join(root, "coverage/readme-example.mjs");
    writeFileSync(file, here(example("README.md", "typescript")));
    try {
      expect(run(process.execPath, file)).toMatch(/hello world\r\n\/tmp\/picod-example\/\S*README.md:\d+\n$/);
    } finally {
      rmSync(file);
    }
  }, 300_000);
});
