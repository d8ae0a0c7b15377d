import { parseArgs } from "node:util";
import { CASES } from "./cases.mjs";

export const USAGE = `Usage: npm run bench -- [options]

Measures picod against sshd and sftp on this machine, interleaved, over the loopback interface. Run it as root.

  --quick            one small round that only shows that everything works
  --rounds <n>       measured rounds of each case (default 9)
  --only <case>      one case, or several: --only exec --only upload
                     ${CASES.map(({ id }) => id).join(", ")}
  --grpc-go          measure a plain grpc-go server too, for the goals that are stated against one
  --nginx            measure nginx too, for files over plain HTTP
  --sdks             measure the Python SDK and the TypeScript client too, each with a picod of its own
  --against <commit> measure picod as of that commit too
  --json <file>      where to write the figures (default: a new file in bench/results)
  --help

The environment variable PICOD_BIN names a built picod to measure instead of building this tree.
`;

const MIB = 1024 * 1024;
const FULL = {
  warmUp: true,
  rounds: 9,
  execs: 200,
  concurrentExecs: 480,
  largeOutputs: 20,
  sleeps: 200,
  sleepSeconds: 2,
  streamBytes: 256 * MIB,
  smallFiles: 1000,
  bulkBytes: 512 * MIB,
  manyExecs: 640,
  transfers: 64,
  transferBytes: 16 * MIB,
  printers: 100,
  lines: 30,
  settledMs: 500,
  toolSeconds: 2,
  toolRequests: 20_000,
};
const QUICK = {
  warmUp: false,
  rounds: 1,
  execs: 5,
  concurrentExecs: 16,
  largeOutputs: 3,
  sleeps: 10,
  sleepSeconds: 0.1,
  streamBytes: 4 * MIB,
  smallFiles: 20,
  bulkBytes: 4 * MIB,
  manyExecs: 64,
  transfers: 8,
  transferBytes: MIB,
  printers: 10,
  lines: 3,
  settledMs: 100,
  toolSeconds: 1,
  toolRequests: 500,
};
const MAX_ROUNDS = 1000;

/** @throws Error that says what is wrong with the arguments. */
export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string", multiple: true },
      "grpc-go": { type: "boolean", default: false },
      sdks: { type: "boolean", default: false },
      nginx: { type: "boolean", default: false },
      against: { type: "string" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const unknown = values.only?.find((id) => !CASES.some((each) => each.id === id));
  if (unknown !== undefined) throw new Error(`unknown case: ${unknown}`);
  const load = values.quick ? QUICK : FULL;
  const rounds = values.rounds === undefined ? load.rounds : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > MAX_ROUNDS) throw new Error(`invalid --rounds: ${values.rounds}`);
  const { quick, against, json, help, nginx, sdks, "grpc-go": grpcGo } = values;
  const cases = CASES.filter(({ id }) => values.only === undefined || values.only.includes(id));
  return { quick, grpcGo, nginx, sdks, against, json, help, cases, load: { ...load, rounds } };
}
