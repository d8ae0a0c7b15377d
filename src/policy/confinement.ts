import { closeSync, constants, existsSync, fstatSync, openSync, readlinkSync, statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { ConfinedThread } from "../os/confined-thread.js";
import { type PathRule, RIGHTS_OF_A_FILE } from "../os/landlock.js";
import { O_PATH } from "../os/root.js";
import type { SpawnOptions } from "../os/spawn.js";
import { errnoName } from "../os/system-error.js";
import type { Capability } from "./capability.js";
import { type FileGrant, fileGrants, type ProgramSearch, SYSTEM_PATHS, terminalGrant } from "./file-grants.js";
import { covers, toHierarchies } from "./hierarchy.js";
import { CapabilityNetwork } from "./network/capability-network.js";
import type { Refused } from "./network/egress-proxy.js";
import { SpareThreads } from "./spare-threads.js";
import { SystemFiles } from "./system-files.js";
import { hasWholeNetwork, isUnconfined } from "./unconfined.js";

export interface ConfinementOptions {
  /** The daemon's PATH: where the names of `allowed_commands` are looked up. */
  readonly path: string;
  /** `--shell`. */
  readonly shell: string | undefined;
  /** Called for everything that a proxy does not let through. */
  readonly onRefused: (capability: string, refused: Refused) => void;
  /** Called with how many more there were, when they were too many to be told one by one. */
  readonly onLeftOut: (capability: string, count: number) => void;
}

const TEMPORARY = "/tmp";
/** Whoever may name users has one for each home directory; those that were not used for longest go. */
const MAX_THREADS = 16;

/** Starts programs, with all restrictions of one capability. */
export interface Spawner {
  /** @throws as `spawn` of os/spawn.ts. */
  spawn(options: SpawnOptions): number;
}

/** What commands of capabilities are started by: one thread for each and each home directory, made at first use; the last 16 are kept. */
export class Confinement {
  readonly #options: ConfinementOptions;
  readonly #networks = new Map<string, CapabilityNetwork>();
  readonly #threads = new Map<string, KeptThread>();
  #system: SystemFiles | undefined;
  #turn = Promise.resolve();

  constructor(options: ConfinementOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  /** The shells that run lines, and that set the limits of a command on the way. */
  get shells(): string[] {
    const usual = existsSync("/bin/bash") ? ["/bin/bash", "/bin/sh"] : ["/bin/sh"];
    return this.#options.shell === undefined ? usual : [this.#options.shell, ...usual];
  }

  /**
   * What starts commands of that capability for a user with that home directory; undefined where nothing restricts them. A thread is made again when what the policy names
   * has come, gone or been replaced since: the kernel holds on to files, not to their names.
   * @throws POLICY_DENIED when it may change what it may execute; an error that says what the kernel or the daemon's rights lack.
   */
  spawner(capability: Capability, home: string): Spawner | undefined {
    if (isUnconfined(capability)) return undefined;
    const key = JSON.stringify([capability.name, home]);
    const kept = this.#threads.get(key);
    this.#threads.delete(key);
    if (kept?.capability === capability && kept.isCurrent()) {
      // The last of the map is the one that was used last.
      this.#threads.set(key, kept);
      return kept;
    }
    kept?.close();
    for (const [oldest, thread] of this.#threads) {
      if (this.#threads.size < MAX_THREADS) break;
      thread.close();
      this.#threads.delete(oldest);
    }
    const made = new KeptThread(capability, this.search(home), this.#network(capability));
    this.#threads.set(key, made);
    return made;
  }

  /**
   * To be awaited before a program is started on a terminal, for which a thread is made: one after the other, so that many at once do
   * not hold up the event loop.
   */
  terminalTurn(capability: Capability | undefined): Promise<void> {
    if (capability === undefined || isUnconfined(capability)) return Promise.resolve();
    this.#turn = this.#turn.then(async () => {
      // Whoever had the turn before has taken its thread by then.
      await setImmediate();
      const threads = [...this.#threads.values()].filter((thread) => thread.capability === capability);
      await Promise.all(threads.map((thread) => thread.terminalReady()));
    });
    return this.#turn;
  }

  /**
   * Variables that every command of that capability has, whatever the request says: the proxy, and where temporary files go and
   * programs keep what is the user's, when that is not where it would be without a policy.
   */
  environment(capability: Capability, home: string): Readonly<Record<string, string>> {
    if (isUnconfined(capability)) return {};
    const { TMPDIR, HOME } = directories(capability, home);
    return { ...this.#network(capability)?.environment, ...(TMPDIR && { TMPDIR }), ...(HOME && { HOME }) };
  }

  /** Takes over a policy that has changed: lists of hosts count at once, and who has no capability any longer has no network. */
  adopt(capabilities: ReadonlyMap<string, Capability>): void {
    for (const [name, network] of this.#networks) {
      const capability = capabilities.get(name);
      if (capability === undefined) {
        network.close();
        this.#networks.delete(name);
      } else if (!hasWholeNetwork(capability)) {
        network.allow(capability);
      }
    }
    // Those of the capabilities as they are now are made when they are needed.
    for (const thread of this.#threads.values()) thread.close();
    this.#threads.clear();
  }

  close(): void {
    for (const thread of this.#threads.values()) thread.close();
    for (const network of this.#networks.values()) network.close();
    this.#threads.clear();
    this.#networks.clear();
  }

  /** How programs are found for somebody with that home directory. Asked for when a policy is read at start: nothing has run by then. */
  search(home: string): ProgramSearch {
    this.#system ??= new SystemFiles(SYSTEM_PATHS);
    return { home, path: this.#options.path, shells: this.shells, system: this.#system };
  }

  #network(capability: Capability): CapabilityNetwork | undefined {
    if (hasWholeNetwork(capability)) return undefined;
    const { name } = capability;
    const known = this.#networks.get(name);
    if (known !== undefined) {
      known.allow(capability);
      return known;
    }
    const { onRefused, onLeftOut } = this.#options;
    const network = new CapabilityNetwork(capability, {
      onRefused: (refused) => onRefused(name, refused),
      onLeftOut: (count) => onLeftOut(name, count),
    });
    this.#networks.set(name, network);
    return network;
  }
}

/**
 * The first directory that may be read and written, in place of /tmp and of the home directory where these may not: programs take it
 * for a fault that a file of theirs is there, as everybody may see, and cannot be opened.
 */
function directories({ filesystem }: Capability, home: string): { readonly TMPDIR?: string; readonly HOME?: string } {
  const hierarchies = (globs: readonly string[] = []) => toHierarchies(globs, home).filter(({ isWhole }) => isWhole);
  const readable = hierarchies(filesystem?.readPaths);
  const isReadable = (path: string) => readable.some((each) => covers(each, path));
  const both = hierarchies(filesystem?.writePaths).filter(({ path }) => isReadable(path));
  const [first] = both;
  if (first === undefined) return {};
  const hasTemporary = both.some((each) => covers(each, TEMPORARY));
  return { ...(hasTemporary ? {} : { TMPDIR: first.path }), ...(isReadable(home) ? {} : { HOME: first.path }) };
}

class KeptThread implements Spawner {
  readonly capability: Capability;
  readonly #grants: readonly FileGrant[];
  readonly #system: SystemFiles;
  readonly #network: CapabilityNetwork | undefined;
  readonly #thread: ConfinedThread;
  /** For terminals. */
  readonly #spares = new SpareThreads(() => this.#makeThread());
  readonly #watched: ReadonlyMap<string, string>;
  /** Undefined: everything. */
  readonly #writable: readonly string[] | undefined;
  /** Kept open: the kernel may otherwise forget an entry of /proc or /sys, and find another one under its name. */
  readonly #pinned: readonly number[];

  constructor(capability: Capability, search: ProgramSearch, network: CapabilityNetwork | undefined) {
    this.capability = capability;
    this.#network = network;
    this.#system = search.system;
    this.#grants = fileGrants(capability, search);
    this.#writable = writableMounts(capability, search.home);
    this.#watched = new Map(this.#grants.filter(isReplaceable).map(({ path }) => [path, stampOf(path)]));
    const opened = openAll(this.#grants, this.#system);
    this.#pinned = opened.filter(({ path }) => /^\/(?:proc|sys)\//.test(path)).map(({ fd }) => fd);
    try {
      this.#thread = this.#makeThread();
      this.#thread.confine(opened);
      if (network?.isMade === false) network.use(this.#thread.network);
    } catch (error) {
      for (const fd of this.#pinned) closeSync(fd);
      throw error;
    } finally {
      for (const { fd } of opened) if (!this.#pinned.includes(fd)) closeSync(fd);
    }
  }

  isCurrent(): boolean {
    return !this.#thread.isBroken && [...this.#watched].every(([path, stamp]) => stampOf(path) === stamp);
  }

  /** A program on a terminal opens that by its path, and no other: it gets a thread of its own, which goes when it has started. */
  spawn(options: SpawnOptions): number {
    if (typeof options.stdio !== "string") return this.#thread.spawn(options);
    const rules = openAll([...this.#grants, terminalGrant(options.stdio)], this.#system);
    const thread = this.#spares.take();
    try {
      thread.confine(rules);
      return thread.spawn(options);
    } finally {
      thread.close();
      for (const { fd } of rules) closeSync(fd);
    }
  }

  terminalReady(): Promise<void> {
    return this.#spares.ready();
  }

  close(): void {
    this.#thread.close();
    this.#spares.close();
    for (const fd of this.#pinned) closeSync(fd);
  }

  #makeThread(): ConfinedThread {
    return new ConfinedThread({ network: this.#network?.toEnter(), writable: this.#writable });
  }
}

/** Hierarchies that may be written, none of them within another; undefined: all there is. */
function writableMounts({ filesystem }: Capability, home: string): string[] | undefined {
  const hierarchies = toHierarchies(filesystem?.writePaths ?? [], home);
  const outermost = hierarchies.filter((one) => !hierarchies.some((other) => other.path !== one.path && covers(other, one.path)));
  const paths = [...new Set(outermost.map(({ path }) => path))];
  return paths.includes("/") ? undefined : paths;
}

/** What the policy names, programs included; the rest of a system stays where it is. */
function isReplaceable({ ofPolicy, isProgram }: FileGrant): boolean {
  return ofPolicy !== undefined || isProgram === true;
}

function stampOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "-" : `${stats.dev}:${stats.ino}:${stats.mode & constants.S_IFMT}`;
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return "-";
  }
}

/** Opens what is there. Nothing is granted by a name that leads elsewhere, over a link: whoever could make that link would grant. */
function openAll(grants: readonly FileGrant[], system: SystemFiles): (PathRule & { readonly path: string })[] {
  const opened: (PathRule & { readonly path: string })[] = [];
  for (const grant of grants) {
    const { path, rights, ofPolicy } = grant;
    const fd = tryOpen(path);
    if (fd === undefined) continue;
    const isDirectory = fstatSync(fd).isDirectory();
    const real = readlinkSync(`/proc/self/fd/${fd}`);
    const isElsewhere = isReplaceable(grant) ? real !== path : !system.isAsBefore(path, real);
    if (isElsewhere || (ofPolicy !== undefined && isDirectory !== (ofPolicy === "whole"))) closeSync(fd);
    else opened.push({ path, fd, rights: isDirectory ? rights : rights & RIGHTS_OF_A_FILE });
  }
  return opened;
}

function tryOpen(path: string): number | undefined {
  try {
    return openSync(path, O_PATH | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(errnoName(error) ?? "")) return undefined;
    throw error;
  }
}
