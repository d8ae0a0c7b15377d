import { PicodError } from "../../errors/picod-error.js";
import type { Capability } from "../../policy/capability.js";
import { assertMayUse } from "../../process/permit-command.js";
import type { ProcessRecord } from "../../process/process-record.js";

/** Started programs by the small numbers that agent-sandbox calls them; a number is never used again. */
export class NumberedProcesses {
  readonly #byNumber = new Map<number, ProcessRecord>();
  #last = 0;

  add(record: ProcessRecord): number {
    this.#last++;
    this.#byNumber.set(this.#last, record);
    return this.#last;
  }

  /** @throws PROCESS_NOT_FOUND; POLICY_DENIED when it was started with another capability. */
  find(processId: number, capability: Capability | undefined): ProcessRecord {
    const found = this.#byNumber.get(processId);
    if (found === undefined) throw new PicodError("PROCESS_NOT_FOUND", `process ${processId} not found`);
    assertMayUse(capability, { id: found.id, owner: found.from.owner });
    return found;
  }

  delete(processId: number): void {
    this.#byNumber.delete(processId);
  }
}
