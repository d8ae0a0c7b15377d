import { type Stats, statSync } from "node:fs";
import { posix } from "node:path";
import type { Config } from "../../config.js";
import { PicodError } from "../../errors/picod-error.js";
import type { FilePermission, PathRules } from "../../os/path-rules.js";
import { realPathIfAny } from "../../os/real-path.js";
import { namesOf, PathGlob } from "../../policy/path-glob.js";

const GLOB_CHARACTERS = /[*?[\\{]/;
const DEFAULT_TOKEN_FILE = "/etc/picod/token";

export type BlockedPathSettings = Pick<
  Config,
  "mcpBlockedPaths" | "accessTokenFile" | "scopesFile" | "tlsKey" | "jwtPublicKey" | "jwksFile" | "auditLog"
>;

/** What the file tools may not open. */
export interface BlockedList {
  readonly globs: readonly string[];
  /** Those that are one file each, to be known by other names. */
  readonly files: readonly string[];
}

export function blockedList(config: BlockedPathSettings): BlockedList {
  const { accessTokenFile = DEFAULT_TOKEN_FILE, scopesFile, tlsKey, jwtPublicKey, jwksFile, auditLog } = config;
  const secrets = [accessTokenFile, scopesFile, tlsKey, jwtPublicKey, jwksFile, auditLog].filter((path) => path !== undefined);
  const literal = config.mcpBlockedPaths.filter((glob) => glob.startsWith("/") && !GLOB_CHARACTERS.test(glob));
  return { globs: [...config.mcpBlockedPaths, ...secrets.flatMap(whereverItIs)], files: [...literal, ...secrets] };
}

/** Kubernetes has such files in a directory beside the link, which another one replaces when they change. */
function whereverItIs(path: string): string[] {
  const literal = (text: string) => text.replace(/[*?[\\{]/g, "[$&]");
  const places = [...new Set([path, realPathIfAny(path) ?? path])];
  return places.map((each) => `${literal(posix.dirname(each)).replace(/\/$/, "")}/**/${literal(posix.basename(each))}`);
}

export interface BlockedPathOptions {
  readonly blocked: BlockedList;
  /** Of the acting user, for `~`. */
  readonly home: string;
  /** What is granted besides; undefined: all. */
  readonly granted: PathRules | undefined;
  /** Open all the same, as commands see it: a session's own directory, wherever it was put; undefined: it has none. */
  readonly except: string | undefined;
}

/** Takes some paths, with all that is below, from what is granted. A file that is blocked by its name is so under its other names too. */
export class BlockedPaths implements PathRules {
  readonly key: string;
  readonly maxFileSizeBytes: number | undefined;
  readonly #globs: readonly { readonly text: string; readonly glob: PathGlob }[];
  readonly #files: readonly string[];
  readonly #granted: PathRules | undefined;
  readonly #except: readonly string[] | undefined;

  constructor({ blocked: { globs, files }, home, granted, except }: BlockedPathOptions) {
    this.key = JSON.stringify([globs, home, granted?.key, except]);
    this.maxFileSizeBytes = granted?.maxFileSizeBytes;
    this.#globs = globs.map((text) => ({ text, glob: new PathGlob(text, home) }));
    this.#files = files;
    this.#granted = granted;
    this.#except = except === undefined ? undefined : namesOf(except);
  }

  mayRead(path: string): boolean {
    return this.#blockedBy(path) === undefined && (this.#granted?.mayRead(path) ?? true);
  }

  mayWrite(path: string): boolean {
    return this.#blockedBy(path) === undefined && (this.#granted?.mayWrite(path) ?? true);
  }

  leadsToReadable(path: string): boolean {
    return this.#leadsToOpen(path) && (this.#granted?.leadsToReadable(path) ?? true);
  }

  leadsToWritable(path: string): boolean {
    return this.#leadsToOpen(path) && (this.#granted?.leadsToWritable(path) ?? true);
  }

  mayReadAllBelow(path: string): boolean {
    return this.#isOpenBelow(path) && (this.#granted?.mayReadAllBelow(path) ?? true);
  }

  mayWriteAllBelow(path: string): boolean {
    return this.#isOpenBelow(path) && (this.#granted?.mayWriteAllBelow(path) ?? true);
  }

  /** Of what is in a blocked directory nobody can say which other names it has: only files that are blocked themselves are known. */
  mayHaveOtherNames(file: Pick<Stats, "dev" | "ino">): boolean {
    if (this.#granted !== undefined && !this.#granted.mayHaveOtherNames?.(file)) return false;
    return !this.#files.some((path) => isSameFile(path, file));
  }

  denial(permission: FilePermission, path: string, why?: string): Error {
    const blockedBy = this.#blockedBy(path);
    if (blockedBy === undefined && this.#granted !== undefined) return this.#granted.denial(permission, path, why);
    const value = blockedBy ?? this.#globs.map(({ text }) => text).join(" ");
    const message = `cannot open ${path || "the file"}: ${why ?? "it is blocked"}: the limit blocked_paths has ${value}`;
    return new PicodError("PATH_BLOCKED", message, { limit: "blocked_paths", value, path });
  }

  tooLarge(path: string): Error {
    return this.#granted?.tooLarge(path) ?? new PicodError("LIMIT_EXCEEDED", `cannot write ${path}: it is too large`, { path });
  }

  /** The glob that a path, or a directory above it, is blocked by. */
  #blockedBy(path: string): string | undefined {
    const names = namesOf(path);
    if (this.#isExcepted(names)) return undefined;
    for (let length = 0; length <= names.length; length++) {
      const above = names.slice(0, length);
      const found = this.#globs.find(({ glob }) => glob.matches(above));
      if (found !== undefined) return found.text;
    }
    return undefined;
  }

  /** Also above the directory that is excepted. */
  #leadsToOpen(path: string): boolean {
    const names = namesOf(path);
    const leadsToExcepted = this.#except !== undefined && names.every((name, index) => this.#except?.[index] === name);
    return leadsToExcepted || this.#blockedBy(path) === undefined;
  }

  #isOpenBelow(path: string): boolean {
    const names = namesOf(path);
    if (this.#isExcepted(names)) return true;
    return this.#blockedBy(path) === undefined && !this.#globs.some(({ glob }) => glob.leadsBeyond(names));
  }

  #isExcepted(names: readonly string[]): boolean {
    return this.#except?.every((name, index) => names[index] === name) ?? false;
  }
}

function isSameFile(path: string, { dev, ino }: Pick<Stats, "dev" | "ino">): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.dev === dev && stats.ino === ino;
}
