import { TOKEN } from "./picod.mjs";

/**
 * How late the latest timer of picod's event loop was since the last time this was asked; undefined of other daemons, and where
 * nothing was sampled meanwhile.
 */
export async function eventLoopDelay({ address, protocolFamily }) {
  if (protocolFamily !== "picod") return undefined;
  const response = await fetch(`http://${address}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const text = await response.text();
  const gauge = (name) => Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (.*)$`, "m").exec(text)?.[1]);
  // Node's histogram holds the times between two samples, lateness included.
  const maxMs = Math.max(0, gauge("max") - SAMPLE_SECONDS) * 1000;
  return Number.isNaN(gauge("mean")) ? undefined : { maxMs };
}

/** As src/metrics.ts. */
const SAMPLE_SECONDS = 0.1;
