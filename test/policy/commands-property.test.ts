import { readdirSync, readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CANARY, type Confined, startConfined } from "../helpers/confined.js";
import { filesBelow } from "../helpers/files-below.js";

const RUNS = Number(process.env.PICOD_PROPERTY_RUNS ?? 60);

let confined: Confined;
beforeAll(async () => {
  confined = await startConfined();
});
afterAll(() => confined[Symbol.asyncDispose]());

function outside(): unknown {
  const { mode, uid, mtimeMs, nlink } = statSync(confined.canary);
  return [readdirSync(`${confined.base}/outside`), readFileSync(confined.canary, "utf8"), mode, uid, mtimeMs, nlink];
}

/** What commands are given: names inside, outside, and ways from one to the other. */
const argument = fc.constantFrom(
  "a",
  "b",
  "d",
  "d/x",
  ".",
  "-r",
  "-s",
  "-f",
  "--",
  "777",
  "../outside/canary",
  "../outside",
  "d/../../outside/canary",
  "$PWD/../outside/canary",
  "/proc/self/cwd/../outside/canary",
  "/proc/self/root$CANARY",
  "/dev/fd/0",
  "/proc/self/fd/1",
  '"$CANARY"',
  "'*'",
  "../*/*",
  "$(find .. -name canary)",
  "$CANARY",
  "/etc/passwd",
);
const command = fc
  .tuple(
    fc.constantFrom(
      "ls",
      "cp",
      "cp -a",
      "ln",
      "ln -s",
      "ln -sf",
      "tee",
      "chmod",
      "find",
      "env",
      "xargs",
      "git add",
      "git diff --no-index",
      "python3",
    ),
    fc.array(argument, { minLength: 1, maxLength: 3 }),
    fc.constantFrom("", "< $CANARY", "< a", "> $CANARY", ">> ../outside/new", "> b", "<<< $CANARY", "< <(ls ..)"),
  )
  .map(([name, args, redirection]) => `${name} ${args.join(" ")} ${redirection}`);
const line = fc
  .array(fc.tuple(command, fc.constantFrom(" ; ", " | ", " && ", " || ", "\n", " & ")), { minLength: 1, maxLength: 4 })
  .map((parts) => `${parts.map(([text, separator]) => text + separator).join("")}true`);

describe("random lines of permitted commands", () => {
  it("read and change nothing outside, with a list of commands and without", async () => {
    const before = outside();
    await fc.assert(
      fc.asyncProperty(line, fc.constantFrom("listed", "free"), async (text, caller) => {
        const command = `CANARY=${confined.canary}; mkdir -p d 2> d.err; echo x > a; ${text}`;
        const told = await confined.execute(caller, {
          command: caller === "free" ? command : command.replace("mkdir -p d 2> d.err", ":"),
          timeout: 10,
        });
        expect([text, told.output]).toEqual([text, expect.not.stringContaining(CANARY)]);
        expect([text, outside()]).toEqual([text, before]);
      }),
      { numRuns: RUNS, ...(process.env.PICOD_PROPERTY_SEED && { seed: Number(process.env.PICOD_PROPERTY_SEED) }) },
    );
    for (const path of filesBelow(confined.workspace)) expect(readFileSync(path, "latin1"), path).not.toContain(CANARY);
  });
});
