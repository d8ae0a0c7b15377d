import type { Stats } from "node:fs";

/** What is granted of files, by real paths: absolute, without links and dots, as `decodePath` has them. Whoever implements it decides. */
export interface PathRules {
  /** The same for two that grant the same. */
  readonly key: string;
  /** Of a file that is written; undefined: no limit. */
  readonly maxFileSizeBytes: number | undefined;
  mayRead(path: string): boolean;
  mayWrite(path: string): boolean;
  /** Whether something below a directory may be read, as far as its path tells. */
  leadsToReadable(path: string): boolean;
  leadsToWritable(path: string): boolean;
  /** Whether everything below a directory may be read, whatever it is called. */
  mayReadAllBelow(path: string): boolean;
  mayWriteAllBelow(path: string): boolean;
  /** Whether a file may be used whatever its other names are; left out: it may not, unless every path is granted. */
  mayHaveOtherNames?(file: Pick<Stats, "dev" | "ino">): boolean;
  /** @param why what keeps it from being decided; undefined: it is not granted. */
  denial(permission: FilePermission, path: string, why?: string): Error;
  /** @param path of a file that would be longer than `maxFileSizeBytes`. */
  tooLarge(path: string): Error;
}

export type FilePermission = "filesystem.read" | "filesystem.write";
