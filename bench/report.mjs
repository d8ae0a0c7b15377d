import { median } from "./statistics.mjs";

/** Turns the rounds of one case into figures: one value for each daemon, and how they compare. */
export function summarize({ id, name, figures, goals }, rounds, daemonNames) {
  const [subject, ...others] = daemonNames;
  return {
    id,
    name,
    figures: figures.map(({ metric, label, typical = median }) => {
      const series = (daemon) => (rounds[daemon] ?? []).map((metrics) => metrics[metric]);
      const values = Object.fromEntries(daemonNames.map((daemon) => [daemon, typical(series(daemon))]));
      const ratios = Object.fromEntries(others.map((other) => [other, ratioOf(series(subject), series(other), typical)]));
      const goal = goals[metric];
      const ratioTo = (other, otherMetric) => {
        const otherSeries = (rounds[other] ?? []).map((metrics) => metrics[otherMetric]);
        return ratioOf(series(subject), otherSeries, typical);
      };
      return { metric, label, values, ratios, goal: goal && judge(goal, values[subject], ratios, ratioTo) };
    }),
    rounds,
  };
}

/** The ratio over all rounds, with the smallest and the largest of a single one: their distance is the noise. */
function ratioOf(series, otherSeries, typical) {
  const single = series.flatMap((value, round) => (otherSeries[round] > 0 ? [value / otherSeries[round]] : []));
  if (single.length === 0) return undefined;
  return { overall: typical(series) / typical(otherSeries), smallest: Math.min(...single), largest: Math.max(...single) };
}

/** The bound that applies in this run, and whether it is met: undefined where nothing was measured. */
function judge({ ratios: bounds = {}, value: absolute, text }, value, ratios, ratioTo) {
  const other = Object.keys(bounds).find((name) => ratios[name] !== undefined);
  const bound = other === undefined ? absolute : bounds[other];
  const ratio = bound?.of === undefined ? ratios[other] : ratioTo(other, bound.of);
  const judged = other === undefined ? value : ratio?.overall;
  if (bound === undefined || judged === undefined) return { text };
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = bound;
  return { text, bound: { ...bound, other }, met: judged >= min && judged <= max };
}

export function toMarkdown({ machine, load, daemonNames, cases, quick }) {
  const [subject, ...others] = daemonNames;
  const header = ["case", "figure", ...daemonNames, ...others.map((other) => `${subject} / ${other}`), "goal", ""];
  const rows = cases.flatMap(({ name, figures }) =>
    figures.map(({ label, values, ratios, goal }, index) => [
      index === 0 ? name : "",
      label,
      ...daemonNames.map((daemon) => format(values[daemon])),
      ...others.map((other) => formatRatio(ratios[other])),
      goal === undefined ? "" : formatGoal(goal),
      goal === undefined ? "" : verdict(goal),
    ]),
  );
  const { picod, cpu, cores, arch, kernel, node, go, ssh, loadAverage, loadAverageAtEnd } = machine;
  return [
    `picod: ${picod}, Node ${node}, ${ssh}; client: ${go}. ${cpu}, ${cores} cores, ${arch}, Linux ${kernel}.`,
    `${load.rounds} interleaved rounds, medians; in brackets the ratios of single rounds. Load average ${loadAverage.toFixed(1)} before, ${loadAverageAtEnd.toFixed(1)} after.`,
    ...(quick ? ["**Quick run: it shows that everything works; its figures mean nothing.**"] : []),
    "",
    ...[header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`),
    "",
  ].join("\n");
}

function verdict({ met }) {
  return met === undefined ? "not offered" : met ? "met" : "missed";
}

function formatGoal({ text, bound }) {
  if (bound?.other === undefined) return text;
  const otherwise = bound.of === undefined ? "" : " one at a time";
  return `${text}: ${bound.max === undefined ? `≥ ${bound.min}` : `≤ ${bound.max}`} × ${bound.other}${otherwise}`;
}

function formatRatio(ratio) {
  if (ratio === undefined) return "–";
  const { overall, smallest, largest } = ratio;
  return `**${format(overall)}** (${format(smallest)}–${format(largest)})`;
}

/** Three digits. */
function format(value) {
  if (value === undefined || Number.isNaN(value)) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
