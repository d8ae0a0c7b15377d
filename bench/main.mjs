// Measures picod beside sshd in one run and prints a Markdown table: see --help.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { buildCommit } from "./against.mjs";
import { buildClient } from "./client.mjs";
import { createFiles } from "./files.mjs";
import { describeMachine } from "./machine.mjs";
import { measureCase } from "./measure.mjs";
import { startNginx } from "./nginx.mjs";
import { parseOptions, USAGE } from "./options.mjs";
import { buildPicod, startPicod } from "./picod.mjs";
import { summarize, toMarkdown } from "./report.mjs";
import { progress, runToEnd } from "./run-to-end.mjs";
import { startSdks } from "./sdks.mjs";
import { startSshd } from "./sshd.mjs";
import { startYardstick } from "./yardstick.mjs";

const RESULTS = join(import.meta.dirname, "results");

await runToEnd(main);

async function main({ stack, signal }) {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "picod-bench-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  progress("building");
  const clientPath = await buildClient(directory);
  const machine = await describeMachine();
  const daemons = await startDaemons(options, { directory, clientPath, onDispose: (dispose) => stack.defer(dispose), signal });
  const context = { clientPath, files: createFiles(directory, options.load), load: options.load };
  const daemonNames = daemons.map(({ name }) => name);
  const cases = [];
  for (const each of options.cases) {
    if (each.program !== undefined && !existsSync(each.program)) {
      progress(`${each.name}: skipped, ${each.program} is not installed`);
      continue;
    }
    progress(each.name);
    cases.push(summarize(each, await measureCase(each, daemons, context), daemonNames));
  }
  machine.loadAverageAtEnd = loadavg()[0];
  const result = { machine, quick: options.quick, load: options.load, daemonNames, cases };
  process.stdout.write(toMarkdown(result));
  progress(`wrote ${writeResult(result, options.json)}`);
}

/** picod first, sshd last: the order of the turns and of the columns. */
async function startDaemons({ against, grpcGo, nginx, sdks }, { directory, clientPath, onDispose, signal }) {
  const other = against === undefined ? undefined : await buildCommit(against, directory, onDispose, signal);
  const launcher = process.env.PICOD_BIN ?? (await buildPicod(directory));
  return [
    await startPicod("picod", launcher, directory, onDispose),
    ...(other === undefined ? [] : [await startPicod(other.name, other.launcher, directory, onDispose)]),
    ...(grpcGo ? [await startYardstick(clientPath, directory, onDispose)] : []),
    ...(sdks ? await startSdks(launcher, directory, onDispose) : []),
    ...(nginx ? [await startNginx(directory, onDispose)] : []),
    await startSshd(directory, onDispose),
  ];
}

function writeResult(result, path) {
  if (path === undefined) mkdirSync(RESULTS, { recursive: true });
  const file = path ?? join(RESULTS, `${result.machine.startedAt.replaceAll(":", "-")}.json`);
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
  return file;
}
