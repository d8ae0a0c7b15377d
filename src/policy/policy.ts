import { type Caller, isDaemonToken } from "../call.js";
import type { Capability } from "./capability.js";
import type { ParsedPolicy } from "./policy-file.js";

/** The policy that is in force, until its file is read again. */
export class Policy {
  #parsed: ParsedPolicy;

  constructor(parsed: ParsedPolicy) {
    this.#parsed = parsed;
  }

  /** Counts for every request from now on, on connections that are open, too. */
  replace(parsed: ParsedPolicy): void {
    this.#parsed = parsed;
  }

  has(name: string): boolean {
    return this.#parsed.capabilities.has(name);
  }

  /** What a caller may do now. Undefined: nothing. */
  capabilityOf(caller: Caller): Capability | undefined {
    const name = this.#nameOf(caller);
    return name === undefined ? undefined : this.#parsed.capabilities.get(name);
  }

  #nameOf(caller: Caller): string | undefined {
    if (caller.capabilityName !== undefined) return caller.capabilityName;
    if (caller.how === "insecure") return this.#parsed.noAuth;
    return isDaemonToken(caller) || caller.how === "local" ? this.#parsed.daemonToken : undefined;
  }
}
