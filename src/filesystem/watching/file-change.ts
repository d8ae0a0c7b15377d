export type FileChangeKind = "created" | "modified" | "attributes" | "removed" | "moved";

/** What came of one or several events. */
export interface FileChange {
  readonly kind: FileChangeKind;
  /** As EntryInfo.path. */
  readonly path: string;
  /** Where it was; of what was moved within what is watched. */
  readonly fromPath: string | undefined;
  readonly isDirectory: boolean;
  /** When it was seen, in milliseconds since 1970. */
  readonly timeMs: number;
}

export interface WatchOptions {
  /** What is below too. Default: no. */
  readonly recursive?: boolean;
  /** Globs, see PathFilter. */
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** Wait until nothing has happened to a path for so long. Default: 0, report at once. */
  readonly debounceMs?: number;
  /** Empty: all. */
  readonly kinds?: readonly FileChangeKind[];
}
