import { PicodError } from "../errors/picod-error.js";
import type { FilePermission, PathRules } from "../os/path-rules.js";
import { namesOf, PathGlob } from "./path-glob.js";

/** What is granted of files, as globs: see PathGlob. */
export interface GrantedPaths {
  /** Whose grant it is: for messages. */
  readonly capability: string;
  readonly readPaths: readonly string[];
  readonly writePaths: readonly string[];
  /** What neither is read nor written whatever the others say, with all that is below. */
  readonly deniedPaths: readonly string[];
  /** Of a file that is written; undefined: no limit. */
  readonly maxFileSizeBytes: number | undefined;
}

/** Grants files by globs. */
export class GlobRules implements PathRules {
  readonly key: string;
  readonly maxFileSizeBytes: number | undefined;
  readonly #capability: string;
  readonly #read: readonly PathGlob[];
  readonly #write: readonly PathGlob[];
  readonly #denied: readonly PathGlob[];
  readonly #all: Readonly<Record<"read" | "write", boolean>>;

  /** @param home of the acting user. @throws SyntaxError for a malformed glob. */
  constructor(granted: GrantedPaths, home: string) {
    const compiled = (globs: readonly string[]) => globs.map((glob) => new PathGlob(glob, home));
    this.key = JSON.stringify([granted, home]);
    this.maxFileSizeBytes = granted.maxFileSizeBytes;
    this.#capability = granted.capability;
    this.#read = compiled(granted.readPaths);
    this.#write = compiled(granted.writePaths);
    this.#denied = compiled(granted.deniedPaths);
    this.#all = { read: this.#coversAllBelow(this.#read, []), write: this.#coversAllBelow(this.#write, []) };
  }

  mayRead(path: string): boolean {
    return this.#grants(this.#read, path);
  }

  mayWrite(path: string): boolean {
    return this.#grants(this.#write, path);
  }

  leadsToReadable(path: string): boolean {
    return this.#leads(this.#read, path);
  }

  leadsToWritable(path: string): boolean {
    return this.#leads(this.#write, path);
  }

  mayReadAllBelow(path: string): boolean {
    return this.#all.read || this.#coversAllBelow(this.#read, namesOf(path));
  }

  mayWriteAllBelow(path: string): boolean {
    return this.#all.write || this.#coversAllBelow(this.#write, namesOf(path));
  }

  denial(permission: FilePermission, path: string, why = "it is not granted"): PicodError {
    const verb = permission === "filesystem.read" ? "read" : "write";
    const message = `may not ${verb}: ${path || "a file"}: ${why} (capability ${this.#capability})`;
    return new PicodError("POLICY_DENIED", message, { capability: this.#capability, permission, subject: path });
  }

  tooLarge(path: string): PicodError {
    const limit = "max_file_size_bytes";
    const value = String(this.maxFileSizeBytes);
    const message = `cannot write ${path}: it would be larger than ${limit} ${value} (capability ${this.#capability})`;
    return new PicodError("POLICY_LIMIT_REACHED", message, { capability: this.#capability, limit, value, path });
  }

  #grants(globs: readonly PathGlob[], path: string): boolean {
    const names = namesOf(path);
    return globs.some((glob) => glob.matches(names)) && !this.#isDenied(names);
  }

  #leads(globs: readonly PathGlob[], path: string): boolean {
    const names = namesOf(path);
    return globs.some((glob) => glob.leadsBeyond(names)) && !this.#isDenied(names);
  }

  #isDenied(names: readonly string[]): boolean {
    return this.#denied.some((glob) => {
      for (let length = 0; length <= names.length; length++) if (glob.matches(names.slice(0, length))) return true;
      return false;
    });
  }

  #coversAllBelow(globs: readonly PathGlob[], names: readonly string[]): boolean {
    if (!globs.some((glob) => glob.matchesAllBelow(names))) return false;
    return !this.#isDenied(names) && !this.#denied.some((glob) => glob.leadsBeyond(names));
  }
}
