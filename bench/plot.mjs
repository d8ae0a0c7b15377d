// Draws what bench:scale has measured, one SVG for each subject: npm run bench:plot -- [figures.json [directory]]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawPanel } from "./plot/panel.mjs";

const ROOT = join(import.meta.dirname, "..");
const [figures = join(ROOT, "bench/results/scale.json"), directory = join(ROOT, "docs/performance")] = process.argv.slice(2);
const PANEL = { width: 400, height: 280 };

const { machine, subjects } = JSON.parse(readFileSync(figures, "utf8"));
mkdirSync(directory, { recursive: true });
for (const subject of subjects) {
  const path = join(directory, `${subject.id}.svg`);
  writeFileSync(path, draw(subject));
  process.stdout.write(`${path}\n`);
}

function draw({ title, points, panels }) {
  const width = PANEL.width * panels.length;
  const height = PANEL.height + 20;
  const drawn = panels.map((panel, index) => {
    const content = drawPanel({ ...panel, xLabel: title, points, ...PANEL });
    return `<g transform="translate(${index * PANEL.width} 0)">\n${content}\n</g>`;
  });
  const made = `picod ${machine.picod}, Node ${machine.node}, ${machine.cores} cores, load average ${machine.loadAverage.toFixed(1)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="What calls cost by ${title}">
<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 10px; fill: #6e7781 }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .axis { stroke: #57606a; stroke-width: 1 }
  .line { fill: none; stroke-width: 2 }
  .first { stroke: #0969da }
  .second { stroke: #bc4c00 }
  .first-fill { fill: #0969da }
  .second-fill { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #8d96a0 }
    .grid { stroke: #30363d }
    .axis { stroke: #8d96a0 }
    .first { stroke: #58a6ff }
    .second { stroke: #f0883e }
    .first-fill { fill: #58a6ff }
    .second-fill { fill: #f0883e }
  }
</style>
${drawn.join("\n")}
<text class="small" x="56" y="${height - 6}">${made}</text>
</svg>
`;
}
