import { libc, SYSCALL } from "./libc.js";
import { check } from "./system-error.js";

/** _LINUX_CAPABILITY_VERSION_3: sets of 64 bits, each as two times 32. */
const VERSION = 0x20080522;
/** Effective, permitted and inheritable, of the lower and of the upper half. */
const EFFECTIVE = [0, 3];

/** The capabilities that the main thread began with. */
export class Capabilities {
  readonly #header = Uint32Array.of(VERSION, 0);
  readonly #own = new Uint32Array(6);
  readonly #none: Uint32Array;

  constructor() {
    check(libc.capabilities(SYSCALL.capget, this.#header, this.#own), "capget");
    this.#none = this.#own.map((bits, index) => (EFFECTIVE.includes(index) ? 0 : bits));
  }

  /** From now on none is in effect; they stay permitted. */
  suspend(): void {
    check(libc.capabilities(SYSCALL.capset, this.#header, this.#none), "capset");
  }

  resume(): void {
    check(libc.capabilities(SYSCALL.capset, this.#header, this.#own), "capset");
  }
}
