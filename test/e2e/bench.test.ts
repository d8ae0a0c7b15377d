import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { PICOD } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const run = promisify(execFile);
const bench = join(import.meta.dirname, "../../bench");
/** Some ten seconds on an idle machine, once its client is built. */
const LIMIT_MS = 600_000;

interface Figure {
  readonly label: string;
  readonly values: Readonly<Record<string, number | undefined>>;
}

interface Case {
  readonly id: string;
  readonly figures: readonly Figure[];
  readonly rounds: Readonly<Record<string, readonly unknown[]>>;
}

describe("the benchmark", () => {
  it("measures every case with every peer in a quick run", { timeout: LIMIT_MS }, async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "figures.json");
    const peers = ["--grpc-go", "--nginx", "--sdks"];
    const { stdout, stderr } = await runBench("main.mjs", "--quick", ...peers, "--json", file);
    expect(stderr).not.toContain("skipped");
    const { cases, daemonNames } = JSON.parse(readFileSync(file, "utf8")) as { cases: Case[]; daemonNames: string[] };
    expect(daemonNames).toEqual(["picod", "grpc-go", "Python SDK", "TypeScript client", "nginx", "sshd"]);
    expect(cases.length).toBeGreaterThan(30);
    for (const { id, figures, rounds } of cases) {
      expect(Object.keys(rounds), id).toContain("picod");
      for (const [daemon, measured] of Object.entries(rounds)) {
        expect(measured, `${id} of ${daemon}`).toHaveLength(1);
        expect(figures[0]?.values[daemon], `${id} of ${daemon}`).toBeTypeOf("number");
      }
    }
    for (const name of daemonNames) expect(stdout).toContain(` ${name} |`);
  });

  it("measures and draws what calls cost by what there is to look after", { timeout: LIMIT_MS }, async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "figures.json");
    const plots = join(directory.path, "plots");
    await runBench("scale.mjs", "--quick", "--json", file);
    await runBench("plot.mjs", file, plots);
    const names = readdirSync(plots);
    expect(names.sort()).toEqual(["connections.svg", "listing.svg", "processes.svg", "watches.svg"]);
    for (const plot of names) {
      const svg = readFileSync(join(plots, plot), "utf8");
      expect(svg, plot).toMatch(/^<svg /);
      expect(svg, plot).toContain("<circle");
      expect(svg, plot).not.toMatch(/NaN|undefined|Infinity/);
    }
  });

  it("lets a crowd work on picod and on sshd", { timeout: LIMIT_MS }, async () => {
    const { stdout } = await runBench("crowd.mjs", "--clients", "5", "--seconds", "2");
    for (const name of ["picod", "sshd"])
      expect(stdout).toMatch(new RegExp(`^\\| ${name} \\| \\d+ in .* \\| 0, 0 \\| \\d+ MiB`, "m"));
  });
});

function runBench(program: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(process.execPath, [join(bench, program), ...args], { env: { ...process.env, PICOD_BIN: PICOD } });
}
