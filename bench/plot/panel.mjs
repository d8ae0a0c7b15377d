import { exactLogScale, formatMark, logScale } from "./log-scale.mjs";

const MARGIN = { left: 56, right: 24, top: 56, bottom: 44 };
const COLOURS = ["first", "second"];

/** One diagram with logarithmic axes: a line for each series, named above it. */
export function drawPanel({ label, series, points, xLabel, width, height }) {
  const left = MARGIN.left;
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  const lines = Object.entries(series).map(([name, metric], index) => ({
    name,
    colour: COLOURS[index],
    // What is too little to be measured has no place on a logarithmic axis.
    points: points.filter((point) => point[metric] > 0).map((point) => [point.x, point[metric]]),
  }));
  const x = exactLogScale(
    points.map((point) => point.x),
    [left, right],
  );
  const y = logScale(
    lines.flatMap((line) => line.points.map(([, value]) => value)),
    [bottom, MARGIN.top],
  );
  return [
    ...y.marks.flatMap((mark) => [
      `<line class="grid" x1="${left}" x2="${right}" y1="${at(y, mark)}" y2="${at(y, mark)}"/>`,
      `<text class="small" text-anchor="end" x="${left - 6}" y="${Number(at(y, mark)) + 3}">${formatMark(mark)}</text>`,
    ]),
    ...x.marks.flatMap((mark) => [
      `<line class="axis" x1="${at(x, mark)}" x2="${at(x, mark)}" y1="${bottom}" y2="${bottom + 4}"/>`,
      `<text class="small" text-anchor="middle" x="${at(x, mark)}" y="${bottom + 16}">${formatMark(mark)}</text>`,
    ]),
    `<line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`,
    `<text x="${left}" y="18">${label}</text>`,
    `<text class="small" text-anchor="middle" x="${(left + right) / 2}" y="${bottom + 32}">${xLabel}</text>`,
    ...lines.flatMap((line, index) => drawLine(line, x, y, left + index * 140)),
  ].join("\n");
}

function drawLine({ name, colour, points }, x, y, legendX) {
  const path = points.map(([px, py], index) => `${index === 0 ? "M" : "L"}${at(x, px)} ${at(y, py)}`).join("");
  return [
    `<path class="line ${colour}" d="${path}"/>`,
    ...points.map(([px, py]) => `<circle class="${colour}-fill" cx="${at(x, px)}" cy="${at(y, py)}" r="3"/>`),
    `<circle class="${colour}-fill" cx="${legendX + 4}" cy="34" r="4"/>`,
    `<text x="${legendX + 14}" y="38">${name}</text>`,
  ];
}

const at = (scale, value) => scale.at(value).toFixed(1);
