import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { unlimitedWithin } from "../helpers/policy-text.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

export const SECRET = "not for everybody";

/** `in`, which a policy grants, beside `out`, which it does not, and what could lead from one to the other. */
export function furnish(path: string): void {
  for (const name of ["in/deep", "out/directory"]) mkdirSync(`${path}/${name}`, { recursive: true });
  for (const name of ["in/file", "in/deep/file"]) writeFileSync(`${path}/${name}`, "inside");
  writeFileSync(`${path}/out/secret`, SECRET);
  symlinkSync("deep/file", `${path}/in/link`);
  symlinkSync("../out", `${path}/in/relative`);
  symlinkSync(`${path}/out`, `${path}/in/absolute`);
  symlinkSync(`${path}/out/none`, `${path}/in/dangling`);
}

/** What changes there. */
export function traces(path: string): unknown {
  return [readdirSync(`${path}/out`, { recursive: true }).toSorted(), readFileSync(`${path}/out/secret`, "utf8")];
}

/** What a policy may say: `worker` has `in`, `operator` everything. */
export function policyFor(path: string, more = ""): string {
  return `
daemon_token = "operator"
${unlimitedWithin("operator", "/**")}
[capabilities.worker.permissions.filesystem]
read_paths = ["${path}/in/**"]
write_paths = ["${path}/in/**"]
[capabilities.nothing]
${more}`;
}

const FILES = ["files:read", "files:write"];
const ALL = [...FILES, "process", "process:read", "admin"];
export const CALLERS = [
  { name: "worker", token: "worker", scopes: ALL, capability: "worker" },
  { name: "reader", token: "reader", scopes: ["files:read"], capability: "worker" },
  { name: "nothing", token: "nothing", scopes: ALL, capability: "nothing" },
  { name: "without", token: "without", scopes: ALL },
];

/** A daemon with a policy, a scopes file and an audit log in `path`. */
export function startWithPolicy(path: string, policy: string, args: readonly string[] = []): Promise<Daemon> {
  writeFileSync(`${path}/policy.toml`, policy);
  writeFileSync(`${path}/scopes.json`, JSON.stringify({ callers: CALLERS }), { mode: 0o600 });
  const files = ["--policy", `${path}/policy.toml`, "--scopes-file", `${path}/scopes.json`, "--audit-log", `${path}/audit.jsonl`];
  return startDaemon({ args: [...files, ...args] });
}

export interface AuditLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Of a daemon that has ended. */
export function auditLines(path: string): AuditLine[] {
  const text = readFileSync(`${path}/audit.jsonl`, "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
