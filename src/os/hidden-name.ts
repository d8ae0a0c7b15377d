import { actingGuard } from "./path-guard.js";
import { temporaryName } from "./temporary-name.js";

/**
 * A name of ours for what is not complete. @param standsFor the name that it will have, by which it is judged until then; undefined: one that
 * is judged when it is given.
 */
export function hiddenName(standsFor: string | undefined): string {
  const name = temporaryName();
  actingGuard()?.stage(name, standsFor);
  return name;
}
