import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = join(import.meta.dirname, "../../src");

interface Source {
  /** From src/ on. */
  readonly file: string;
  readonly text: string;
  /** Packages as they are named, own files from src/ on. */
  readonly imports: readonly string[];
}

const sources: readonly Source[] = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.startsWith("gen/"))
  .map((file) => {
    // Comments may speak of what code may not do.
    const text = readFileSync(join(SRC, file), "utf8").replace(/\/\*.*?\*\/|^\s*\/\/.*$/gms, "");
    const named = [...text.matchAll(/(?:from|import|import\()\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
    const imports = named.map((name) => (name.startsWith(".") ? relative(SRC, join(SRC, dirname(file), name)) : name));
    return { file, text, imports };
  });

const OPERATIONS = /^(filesystem|process|os)\//;
/** What several façades need to serve files; not one of them. */
const SHARED = "files";
const FACADES = readdirSync(join(SRC, "api"), { withFileTypes: true }).filter(
  (entry) => entry.isDirectory() && entry.name !== SHARED,
);

/** A rule: files that it is for, and what none of them may import or hold. */
const RULES: readonly (readonly [title: string, file: (file: string) => boolean, forbidden: RegExp])[] = [
  [
    "operations know nothing of the wire",
    (file) => OPERATIONS.test(file),
    /^(@connectrpc\/|@bufbuild\/|gen\/|api\/|server\/|interceptors\/|cli\/)/,
  ],
  ["filesystem/ does not import process/", (file) => file.startsWith("filesystem/"), /^process\//],
  ["process/ does not import filesystem/", (file) => file.startsWith("process/"), /^filesystem\//],
  ["os/ imports nothing of the operations", (file) => file.startsWith("os/"), /^(filesystem|process|api|server)\//],
  [
    "policy/ knows neither the wire nor the operations that ask it",
    (file) => file.startsWith("policy/"),
    /^(process|api|server|gen)\//,
  ],
  ["native code is in os/libc.ts alone", (file) => file !== "os/libc.ts", /^(koffi|node:ffi)$/],
  ["nothing uses child_process", () => true, /^(node:)?child_process$/],
  [
    "what façades share imports none of them",
    (file) => file.startsWith(`api/${SHARED}/`),
    new RegExp(`^api/(${FACADES.map(({ name }) => name).join("|")})/`),
  ],
  ["façades do not import the server", (file) => file.startsWith("api/"), /^(server|cli)\//],
  ...FACADES.map(({ name }): [string, (file: string) => boolean, RegExp] => [
    `api/${name}/ imports no other façade`,
    (file) => file.startsWith(`api/${name}/`),
    new RegExp(
      `^api/(${FACADES.filter((other) => other.name !== name)
        .map((other) => other.name)
        .join("|")})/`,
    ),
  ]),
];

describe("imports", () => {
  it.each(RULES)("%s", (_title, isMeant, forbidden) => {
    const broken = sources
      .filter(({ file }) => isMeant(file))
      .flatMap(({ file, imports }) => imports.filter((name) => forbidden.test(name)).map((name) => `${file} imports ${name}`));
    expect(broken).toEqual([]);
  });
});

describe("the bundle of MCP's SDK", () => {
  const valuesFrom = (text: string) =>
    [...text.matchAll(/^import (?!type )[^;]*?from "([^"]+)"/gms)].map((match) => match[1] ?? "");
  const isInside = (file: string) => file.startsWith("api/mcp/protocol/");

  it("has nothing of the daemon in it but types, of which two copies are none", () => {
    const broken = sources
      .filter(({ file }) => isInside(file))
      .filter(({ text }) => valuesFrom(text).some((name) => name.startsWith("../")));
    expect(broken.map(({ file }) => file)).toEqual([]);
  });

  it("is where all of it is, so that nobody else loads it", () => {
    const broken = sources
      .filter(({ file }) => !isInside(file))
      .filter(({ text }) =>
        valuesFrom(text).some((name) => name.startsWith("@modelcontextprotocol/") || name.includes("/protocol/main.js")),
      );
    expect(broken.map(({ file }) => file)).toEqual([]);
  });
});

describe("sources", () => {
  it("use the process's environment, arguments and exit at the edge alone", () => {
    const allowed = /^(main\.ts|config\.ts|shutdown\.ts|cli\/)/;
    const found = sources.filter(({ file, text }) => !allowed.test(file) && /\bprocess\.(env|argv|exit)\b/.test(text));
    expect(found.map(({ file }) => file)).toEqual([]);
  });

  it("export nothing by default", () => {
    expect(sources.filter(({ text }) => /^export default\b/m.test(text)).map(({ file }) => file)).toEqual([]);
  });
});
