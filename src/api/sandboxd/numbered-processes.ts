import { PicodError } from "../../errors/picod-error.js";
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

  /** @throws PROCESS_NOT_FOUND. */
  find(processId: number): ProcessRecord {
    const found = this.#byNumber.get(processId);
    if (found === undefined) throw new PicodError("PROCESS_NOT_FOUND", `process ${processId} not found`);
    return found;
  }

  delete(processId: number): void {
    this.#byNumber.delete(processId);
  }
}
