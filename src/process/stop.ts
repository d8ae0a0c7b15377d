import type { ManagedProcess } from "./managed-process.js";
import { type Grace, type Termination, terminate } from "./termination.js";

/**
 * Ends a process and all that descends from it, and waits until they are gone. Of one that has ended already it reaches the
 * background children that were left. Never rejects.
 */
export async function stop(process: ManagedProcess | undefined, grace: Grace): Promise<Termination> {
  // It could not be started.
  if (process === undefined) return { forced: false, survivingProcesses: 0 };
  if (process.hasEnded) return terminate(process, grace);
  process.stop("cancelled", grace);
  const { forced, survivingProcesses } = await process.ended;
  // It has ended by itself meanwhile; what it left in the background has not.
  return process.stopping ? { forced, survivingProcesses } : terminate(process, grace);
}
