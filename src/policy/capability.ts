/** What a policy grants to those who have it: one set of its `[capabilities.NAME]`. What is not granted is denied. */
export interface Capability {
  /** As tokens and claims refer to it. */
  readonly name: string;
  /** Whom its requests may act as besides the default user; `*`: everybody. Empty: nobody. */
  readonly users: readonly string[];
  /** Undefined: no file at all. */
  readonly filesystem: FilesystemPermissions | undefined;
  /** Undefined: no command at all. */
  readonly shell: ShellPermissions | undefined;
  readonly network: NetworkPermissions;
  readonly limits: CapabilityLimits;
}

/** Globs of absolute paths: `*` and `?` within a name, `**` across directories, `~` for a home: see `grantsAt`. */
export interface FilesystemPermissions {
  readonly readPaths: readonly string[];
  /** Writing takes nothing of reading with it: who is to do both has the path in both. */
  readonly writePaths: readonly string[];
}

export interface ShellPermissions {
  /** Names that are looked up in the daemon's PATH, or absolute paths. Undefined: every program. */
  readonly allowedCommands: readonly string[] | undefined;
  /** Where commands start, and what a request may name below; undefined: wherever files may be read. */
  readonly workingDirectory: string | undefined;
  /** Names, or beginnings of names with a `*`, of the variables that a request may set; undefined: none. */
  readonly env: readonly string[] | undefined;
}

export interface NetworkPermissions {
  /** Names of hosts, `*.example.org` for those below one, `*` for the whole network as it is. Empty: none. */
  readonly allowedDomains: readonly string[];
}

/** Undefined: as the daemon's own settings have it. */
export interface CapabilityLimits {
  /** Of a command; a request that asks for more is refused. */
  readonly timeoutSeconds: number | undefined;
  readonly maxFileSizeBytes: number | undefined;
  /** Made by one session. */
  readonly maxFiles: number | undefined;
  /** Alive at once, of all who have this capability. */
  readonly maxProcesses: number | undefined;
}
