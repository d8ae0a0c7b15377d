import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { BEGINNING, request, type Step, steps } from "./support/file-steps.js";
import { USER } from "./support/rights-situations.js";

/** Of sequences of steps; `npm run test:races` does more. */
const RUNS = Number(process.env.PICOD_PROPERTY_RUNS ?? 60);
/** From the report of a failure, to repeat it. */
const SEED = process.env.PICOD_PROPERTY_SEED;
const MAX_STEPS = 25;
const TIMEOUT_MS = 3_600_000;
/** What was made during the test is later; times that steps set are earlier. */
const SET_BEFORE_NS = 1_100_000_000n * 1_000_000_000n;

interface Outcome {
  readonly failure?: string;
  readonly answer?: unknown;
}

/** Does steps with plain calls, as the user. Use with `using`. */
class PlainUser implements Disposable {
  readonly #child: ChildProcess = fork(join(import.meta.dirname, "support/plain-files.mjs"), [`${USER.uid}`, `${USER.gid}`]);

  async do(root: string, step: Step): Promise<Outcome> {
    const answered = once(this.#child, "message");
    this.#child.send({ root, step });
    return (await answered)[0];
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }
}

async function byService(clients: Clients, root: string, step: Step): Promise<Outcome> {
  try {
    return { answer: await request(clients, root, step) };
  } catch (error) {
    return { failure: String(error) };
  }
}

/** One line for each entry of a tree. Times of directories depend on how files come to be in them. */
function describe(root: string): string[] {
  const first = new Map<bigint, string>();
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => {
      const full = join(root, path);
      const stats = lstatSync(full, { bigint: true });
      const mode = stats.mode.toString(8);
      if (stats.isDirectory()) return `${path} ${mode}`;
      const content = stats.isSymbolicLink() ? `-> ${readlinkSync(full)}` : JSON.stringify(readFileSync(full, "utf8"));
      const time = stats.mtimeNs < SET_BEFORE_NS ? stats.mtimeNs : "now";
      if (!first.has(stats.ino)) first.set(stats.ino, path);
      return `${path} ${mode} ${content} ${time}, ${stats.nlink} names, first ${first.get(stats.ino)}`;
    });
}

it(
  "what the service does to a tree is what plain calls do",
  async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--user", USER.name] });
    await using clients = connectTo(daemon.url);
    using user = new PlainUser();
    let runs = 0;

    async function trees(): Promise<[string, string]> {
      const pair: [string, string] = [join(directory.path, `${runs} service`), join(directory.path, `${runs} plain`)];
      runs++;
      for (const root of pair) {
        mkdirSync(root);
        chownSync(root, USER.uid, USER.gid);
        for (const step of BEGINNING) expect(await user.do(root, step)).toEqual({});
      }
      return pair;
    }

    const property = fc.asyncProperty(steps(MAX_STEPS), async (sequence) => {
      const [served, plain] = await trees();
      for (const [index, step] of sequence.entries()) {
        const done = step.kind === "link" ? await user.do(served, step) : await byService(clients, served, step);
        const expected = await user.do(plain, step);
        const title = `step ${index}: ${done.failure ?? "done"}; plainly: ${expected.failure ?? "done"}`;
        expect(done.failure === undefined, title).toBe(expected.failure === undefined);
        expect(done.answer, title).toEqual(expected.answer);
        expect(describe(served), title).toEqual(describe(plain));
      }
    });
    await fc.assert(property, { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }) });
  },
  TIMEOUT_MS,
);
