import { constants } from "node:os";
import { errno, libc, SYSCALL } from "./libc.js";
import { check, systemError } from "./system-error.js";

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

const PR_CAPBSET_DROP = 24;
/**
 * CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: a root without others cannot mount, trace, load
 * modules, make devices or namespaces, send raw packets or open files by handle, and package managers still work.
 */
const KEPT_BY_CONFINED_ROOT: readonly number[] = [0, 1, 3, 4, 5, 6, 7, 10];
const LAST_CAPABILITY = 63;

/** Takes all other capabilities from what the calling thread starts, forever; the thread itself keeps its own. For root alone. */
export function limitCapabilitiesOfChildren(): void {
  for (let capability = 0; capability <= LAST_CAPABILITY; capability++) {
    if (KEPT_BY_CONFINED_ROOT.includes(capability)) continue;
    // Beyond the last that this kernel has: EINVAL.
    if (libc.prctlStrict(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0 && errno() !== constants.errno.EINVAL) {
      throw systemError("prctl(PR_CAPBSET_DROP)");
    }
  }
}
