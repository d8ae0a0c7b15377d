import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { followToEnd, selectId, startAndLeave } from "../rpc/support/processes.js";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Metric {
  readonly type: string;
  readonly labels: readonly string[];
}

let daemon: Daemon;
/** What /metrics shows after a bit of everything. */
let live: ReadonlyMap<string, Metric>;

beforeAll(async () => {
  // A collector that is not there drops spans.
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
    OTEL_BSP_SCHEDULE_DELAY: "10",
  };
  daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN: TOKEN, ...env } });
  await using clients = connectTo(daemon.url);
  await clients.process.execute({ command: "exit 3" });
  await clients.process.execute({ command: "echo 12345", maxOutputBytes: 1n });
  await fetch(`${daemon.url}/v1/processes`);
  await eventually("spans are dropped", async () => (await scrape()).includes("picod_trace_spans_dropped_total{"));
  await eventually("garbage is collected", async () => (await scrape()).includes("nodejs_gc_duration_seconds_count{"));
  live = metricsOf(await scrape());
});

afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
});

async function scrape(): Promise<string> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  return await (await fetch(`${daemon.url}/metrics`, { headers })).text();
}

function metricsOf(text: string): Map<string, Metric> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Map(types.map(([, name = "", type = ""]) => [name, { type, labels: labelsOf(text, name) }]));
}

function labelsOf(text: string, name: string): string[] {
  const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, "gm"));
  const labels = [...samples].flatMap(([, all = ""]) => [...all.matchAll(/(\w+)="/g)].map(([, label = ""]) => label));
  return [...new Set(labels)].filter((label) => label !== "le").sort();
}

function documented(): Map<string, Metric> {
  const table = /<!-- metrics: [\s\S]*?-->\n([\s\S]*?)<!-- \/metrics -->/.exec(read("docs/telemetry.md"))?.[1] ?? "";
  const rows = [...table.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.+) \|$/gm)];
  return new Map(
    rows.map(([, name = "", type = "", labels = ""]) => {
      return [name, { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort() }];
    }),
  );
}

/** Names of metrics and labels that a query asks for. @throws when it is not PromQL. */
function asksFor(query: string): { readonly metrics: string[]; readonly labels: string[] } {
  const metrics: string[] = [];
  const labels: string[] = [];
  parser.parse(query).iterate({
    enter({ name, type, from, to }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${query}`);
      if (name === "Identifier") metrics.push(query.slice(from, to));
      if (name === "LabelName") labels.push(query.slice(from, to));
    },
  });
  return { metrics, labels };
}

/** A histogram is asked for by its parts. */
const withoutSuffix = (name: string) => (live.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ""));
/** What Prometheus itself adds. */
const ADDED_METRICS = ["up"];
const ADDED_LABELS = ["job", "instance", "le"];

function expectToExist(query: string): void {
  const { metrics, labels } = asksFor(query);
  expect(metrics, query).not.toEqual([]);
  const known = metrics.filter((name) => !ADDED_METRICS.includes(name)).map(withoutSuffix);
  expect([...live.keys()], query).toEqual(expect.arrayContaining(known));
  const own = [...ADDED_LABELS, ...known.flatMap((name) => live.get(name)?.labels ?? [])];
  expect(own, query).toEqual(expect.arrayContaining(labels));
}

describe.each(["telemetry.md", "operating.md"])("docs/%s", (page) => {
  it("names only files that exist", () => {
    for (const [, path = ""] of read(`docs/${page}`).matchAll(/\]\(([^):]+)\)/g)) {
      expect(existsSync(join(root, "docs", path)), path).toBe(true);
    }
  });
});

describe("picod_output_trimmed_bytes_total", () => {
  it("counts what results leave out, and what followers miss", async () => {
    await using other = await startDaemon();
    await using clients = connectTo(other.url);
    await clients.process.execute({ command: "head -c 1000 /dev/zero; head -c 300 /dev/zero >&2", maxOutputBytes: 100n });
    const id = await startAndLeave(clients, { command: "cat; head -c 2000000 /dev/zero", stdin: true });
    await clients.process.closeInput(selectId(id));
    await eventually("it has ended", async () => (await clients.process.getProcess(selectId(id))).process?.outcome !== undefined);
    const { trimmed } = await followToEnd(clients.process.attach(selectId(id)));
    const missed = trimmed.reduce((sum, { from, to }) => sum + to - from, 0n);
    expect(missed).toBeGreaterThan(500_000n);
    const text = await (await fetch(`${other.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();
    expect(text).toContain('picod_output_trimmed_bytes_total{missing_in="result"} 1100\n');
    expect(text).toContain(`picod_output_trimmed_bytes_total{missing_in="follower"} ${missed}\n`);
  });
});

describe("docs/telemetry.md", () => {
  it("has every metric of /metrics, and no other, with type and labels", () => {
    const shown = documented();
    expect([...shown.keys()].sort()).toEqual([...live.keys()].sort());
    for (const [name, { type, labels }] of live) {
      expect(shown.get(name)?.type, name).toBe(type);
      // Of some there is nothing to see yet.
      if (labels.length > 0) expect(shown.get(name)?.labels, name).toEqual(labels);
    }
  });
});

describe("deploy/prometheus/alerts.yaml", () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string; readonly description: string };
  }

  it("asks for metrics and labels that are there", () => {
    const { groups } = parse(read("deploy/prometheus/alerts.yaml")) as { groups: { rules: Rule[] }[] };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(8);
    for (const { expr, labels, annotations } of rules) {
      expectToExist(expr);
      expect(["critical", "warning"]).toContain(labels.severity);
      expect([annotations.summary, annotations.description]).not.toContain(undefined);
    }
  });
});

describe("deploy/grafana/dashboard.json", () => {
  interface Dashboard {
    readonly panels: { readonly title: string; readonly targets: { readonly expr: string }[] }[];
    readonly templating: { readonly list: { readonly type: string; readonly query: { readonly query: string } }[] };
  }

  it("asks for metrics and labels that are there", () => {
    const { panels, templating } = JSON.parse(read("deploy/grafana/dashboard.json")) as Dashboard;
    // What Grafana puts in before it asks.
    const asked = (query: string) => query.replaceAll("$__rate_interval", "5m").replaceAll(/\$(job|instance|procedure)/g, ".*");
    for (const { targets } of panels) for (const { expr } of targets) expectToExist(asked(expr));
    const variables = templating.list.filter(({ type }) => type === "query");
    expect(variables).toHaveLength(3);
    for (const { query } of variables) {
      const [, selector = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(query.query) ?? [];
      expectToExist(`sum by (${label}) (${asked(selector)})`);
    }
  });
});
