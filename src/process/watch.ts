import { PicodError } from "../errors/picod-error.js";
import type { Capability } from "../policy/capability.js";
import { mayUse } from "./permit-command.js";
import type { ProcessRegistry, RegistryEvent } from "./process-registry.js";

/** Events that may wait for a watcher that does not take them. */
const MAX_WAITING_EVENTS = 10_000;

/**
 * What happens from now on to processes that somebody with that capability may see, with a keepalive first and whenever nothing happens.
 * @throws WATCHER_TOO_SLOW; the signal's reason.
 */
export async function* watch(
  registry: ProcessRegistry,
  capability: Capability | undefined,
  keepaliveMs: number,
  abortSignal: AbortSignal,
): AsyncGenerator<RegistryEvent | { readonly kind: "keepalive" }> {
  const waiting: RegistryEvent[] = [];
  let wake: () => void = () => undefined;
  const stop = registry.watch((event) => {
    if (!mayUse(capability, event.record.from.owner)) return;
    waiting.push(event);
    wake();
  });
  const timer = setInterval(() => wake(), keepaliveMs);
  const onAbort = () => wake();
  abortSignal.addEventListener("abort", onAbort);
  try {
    yield { kind: "keepalive" };
    for (;;) {
      abortSignal.throwIfAborted();
      if (waiting.length > MAX_WAITING_EVENTS) {
        throw new PicodError("WATCHER_TOO_SLOW", `cannot watch processes: ${waiting.length} events wait to be taken`);
      }
      const event = waiting.shift();
      if (event !== undefined) {
        yield event;
        continue;
      }
      timer.refresh();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (waiting.length === 0 && !abortSignal.aborted) yield { kind: "keepalive" };
    }
  } finally {
    clearInterval(timer);
    stop();
    abortSignal.removeEventListener("abort", onAbort);
  }
}
