import { setImmediate as nextTurn } from "node:timers/promises";
import { withFileRightsOf } from "../../os/credentials.js";
import type { Access } from "../access.js";

/** Slow work on descriptors, to be done outside of the turns of an operation; or nothing, when others may have their turn. */
export type Step = (() => Promise<void>) | undefined;

/** So long the main thread may belong to one operation. */
const TURN_MS = 2;

/**
 * Runs an operation with the rights of the acting user in short turns, and what it yields between them without. An error of that, and, once,
 * the abort signal, appear where the operation stands; it may go on, to undo what it has done.
 */
export async function inSteps<T>(access: Access, steps: Generator<Step, T, void>, abortSignal: AbortSignal): Promise<T> {
  let told = false;
  let failure: { readonly error: unknown } | undefined;
  for (;;) {
    if (abortSignal.aborted && !told) failure = { error: abortSignal.reason };
    told ||= abortSignal.aborted;
    const result = withFileRightsOf(access, () => takeTurn(steps, failure));
    failure = undefined;
    if (result.done) return result.value;
    try {
      await (result.value ?? nextTurn)();
    } catch (error) {
      failure = { error };
      told ||= abortSignal.aborted;
    }
  }
}

function takeTurn<T>(steps: Generator<Step, T, void>, failure: { readonly error: unknown } | undefined): IteratorResult<Step, T> {
  const until = performance.now() + TURN_MS;
  let result = failure === undefined ? steps.next() : steps.throw(failure.error);
  while (!result.done && result.value === undefined && performance.now() < until) result = steps.next();
  return result;
}
