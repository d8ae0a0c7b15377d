// Measures what a call costs as a function of what the daemon has to look after: see --help.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildClient, openClient } from "./client.mjs";
import { describeMachine } from "./machine.mjs";
import { buildPicod, startPicod } from "./picod.mjs";
import { progress, runToEnd } from "./run-to-end.mjs";
import { connections } from "./scale/connections.mjs";
import { listing } from "./scale/listing.mjs";
import { processes } from "./scale/processes.mjs";
import { watches } from "./scale/watches.mjs";

const SUBJECTS = [processes, watches, listing, connections];
const RESULTS = join(import.meta.dirname, "results");
const USAGE = `Usage: npm run bench:scale -- [options]

Measures what calls of picod cost as a function of live processes, watched directories, listed files and connections.

  --quick           a few small points that only show that everything works
  --only <subject>  one subject, or several: ${SUBJECTS.map(({ id }) => id).join(", ")}
  --rounds <n>      rounds at each point (default 5)
  --json <file>     where to write the figures (default: bench/results/scale.json); npm run bench:plot draws them
  --help

The environment variable PICOD_BIN names a built picod to measure instead of building this tree.
`;

await runToEnd(main);

async function main({ stack }) {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true },
      rounds: { type: "string", default: "5" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const unknown = values.only?.find((id) => !SUBJECTS.some((subject) => subject.id === id));
  if (unknown !== undefined) throw new Error(`unknown subject: ${unknown}`);
  const rounds = values.quick ? 1 : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`invalid --rounds: ${values.rounds}`);
  const directory = mkdtempSync(join(tmpdir(), "picod-scale-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  progress("building");
  const clientPath = await buildClient(directory);
  const launcher = process.env.PICOD_BIN ?? (await buildPicod(directory));
  const machine = await describeMachine();
  const subjects = [];
  for (const subject of SUBJECTS) {
    if (values.only !== undefined && !values.only.includes(subject.id)) continue;
    const points = await measureSubject(subject, { quick: values.quick, rounds, directory, clientPath, launcher, stack });
    subjects.push({ ...subject, at: undefined, prepare: undefined, points });
  }
  machine.loadAverageAtEnd = loadavg()[0];
  mkdirSync(RESULTS, { recursive: true });
  const file = values.json ?? join(RESULTS, "scale.json");
  writeFileSync(file, `${JSON.stringify({ machine, quick: values.quick, subjects }, null, 2)}\n`);
  progress(`wrote ${file}`);
}

/** Each subject has a picod of its own, so that none pays for what another has left in memory. */
async function measureSubject(subject, { quick, rounds, directory, clientPath, launcher, stack }) {
  await using own = new AsyncDisposableStack();
  // Undone with everything else if a signal comes first.
  stack.defer(() => own.disposeAsync());
  const daemon = await startPicod(`picod-${subject.id}`, launcher, directory, (dispose) => own.defer(dispose));
  const client = openClient(clientPath, daemon, "grpc");
  own.defer(() => client.close());
  const context = { daemon, client, directory, rounds, calls: quick ? 20 : subject.calls };
  const state = await subject.prepare(context);
  const points = [];
  const xs = quick ? subject.xs.slice(0, 2) : subject.xs;
  // Compiled code is faster, and has to be compiled: the first point would be the worst.
  if (!quick) await subject.at(xs[0], context, state);
  for (const x of xs) {
    progress(`${subject.title}: ${x}`);
    const point = await subject.at(x, context, state);
    points.push({ x, ...point });
    progress(JSON.stringify(point));
  }
  return points;
}
