import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { filesBelow } from "../helpers/files-below.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { request, type Step, steps } from "../rpc/support/file-steps.js";

/** Of sequences of steps; `npm run test:races` does more. */
const RUNS = Number(process.env.PICOD_PROPERTY_RUNS ?? 25);
/** From the report of a failure, to repeat it. */
const SEED = process.env.PICOD_PROPERTY_SEED;
const MAX_STEPS = 25;
const TIMEOUT_MS = 3_600_000;

/** What must not be read, and what must not be changed. */
const CANARIES = [
  { path: "b/canary", secret: "", content: "READ-ONLY" },
  { path: "b/d/canary", secret: "", content: "READ-ONLY-BELOW" },
  { path: "c/secret", secret: "WRITE-ONLY", content: undefined },
  { path: "c/d/secret", secret: "WRITE-ONLY-BELOW", content: undefined },
  { path: "d/canary", secret: "NEITHER", content: "NEITHER" },
  { path: "d/a/canary", secret: "NEITHER-BELOW", content: "NEITHER-BELOW" },
  { path: "canary", secret: "ABOVE", content: "ABOVE" },
] as const;

/** `a` and `e` may be read and written, `b` read, `c` written, and `d` neither. */
function policyOf(base: string): string {
  const globs = (...names: string[]) => JSON.stringify(names.map((name) => `${base}/*/${name}/**`));
  return `daemon_token = "x"
[capabilities.x.permissions.filesystem]
read_paths = ${globs("a", "b", "e")}
write_paths = ${globs("a", "c", "e")}
`;
}

function furnish(root: string): void {
  for (const name of ["a/b", "e", "c/b", "d/b", "b/c"]) mkdirSync(join(root, name), { recursive: true });
  for (const { path, secret, content } of CANARIES) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), content ?? secret);
    chmodSync(join(root, path), 0o666);
  }
  for (const name of ["a/a", "a/b/a", "e/a"]) writeFileSync(join(root, name), "a file");
  symlinkSync("../d", join(root, "a/d"));
  symlinkSync("../../c/secret", join(root, "a/b/d"));
  symlinkSync(join(root, "b"), join(root, "e/d"));
  linkSync(join(root, "c/secret"), join(root, "a/c"));
  linkSync(join(root, "b/canary"), join(root, "e/c"));
}

/** What a caller could not have done with what it may do. */
function assertUntouched(root: string, title: string): void {
  for (const { path, content } of CANARIES) {
    if (content !== undefined) expect(readFileSync(join(root, path), "utf8"), `${title}: ${path}`).toBe(content);
  }
  expect(readdirSync(join(root, "d"), { recursive: true }).toSorted(), title).toEqual(["a", "a/canary", "b", "canary"]);
  expect(readdirSync(join(root, "b"), { recursive: true }).toSorted(), title).toEqual(["c", "canary", "d", "d/canary"]);
  expect(readdirSync(root).toSorted(), title).toEqual(["a", "b", "c", "canary", "d", "e"]);
  for (const name of ["b", "d", "b/canary", "d/canary"]) {
    expect(lstatSync(join(root, name)).mode & 0o7777, `${title}: ${name}`).toBe(name.includes("/") ? 0o666 : 0o755);
  }
  // Nor is there another copy of it where it can be read.
  for (const name of ["a", "b", "e"]) {
    for (const path of filesBelow(join(root, name))) {
      // Of a file that has other names too only those are another's.
      if (lstatSync(path).nlink === 1) assertNoSecret(readFileSync(path, "latin1"), `${title}: ${path}`);
    }
  }
}

function assertNoSecret(text: string, title: string): void {
  for (const { secret } of CANARIES) if (secret !== "") expect(text.includes(secret), `${title} tells ${secret}`).toBe(false);
}

/** Resolves with whether it was denied. */
async function does(clients: Clients, root: string, step: Step): Promise<"done" | "denied" | "failed"> {
  try {
    assertNoSecret(JSON.stringify(await request(clients, root, step)) ?? "", JSON.stringify(step));
    return "done";
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    expect([Code.Internal, Code.Unknown], `${JSON.stringify(step)}: ${error.message}`).not.toContain(error.code);
    return error.code === Code.PermissionDenied ? "denied" : "failed";
  }
}

it(
  "no sequence of calls reads or changes what a policy does not grant",
  async () => {
    using directory = temporaryDirectory();
    const base = directory.path;
    const policy = join(base, "policy.toml");
    writeFileSync(policy, policyOf(base));
    await using daemon = await startDaemon({ args: ["--policy", policy] });
    await using clients = connectTo(daemon.url);
    const outcomes = { done: 0, denied: 0, failed: 0 };
    let runs = 0;
    // Hard links are made by nobody but those that are there in the beginning: whoever can make one could read the file.
    const sequences = steps(MAX_STEPS).map((sequence) => sequence.filter(({ kind }) => kind !== "link"));
    const property = fc.asyncProperty(sequences, async (sequence) => {
      const root = join(base, `${runs++}`);
      mkdirSync(root);
      furnish(root);
      for (const [index, step] of sequence.entries()) {
        outcomes[await does(clients, root, step)]++;
        assertUntouched(root, `step ${index}: ${JSON.stringify(step)}`);
      }
      rmSync(root, { recursive: true });
    });
    await fc.assert(property, { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }) });
    expect(outcomes.done, JSON.stringify(outcomes)).toBeGreaterThan(10);
    expect(outcomes.denied, JSON.stringify(outcomes)).toBeGreaterThan(10);
  },
  TIMEOUT_MS,
);
