import { setTimeout as sleep } from "node:timers/promises";

const CEILING_MS = 10_000;
const INTERVAL_MS = 10;

/**
 * For what the system reports no event of: asks again until `holds`, and fails with `what` after a ceiling. A function is asked then, for what
 * is seen at that moment.
 */
export async function eventually(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  ceilingMs = CEILING_MS,
): Promise<void> {
  const giveUpAt = performance.now() + ceilingMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${ceilingMs} ms: ${typeof what === "string" ? what : what()}`);
    await sleep(INTERVAL_MS);
  }
}
