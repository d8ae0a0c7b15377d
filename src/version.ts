/** Replaced by the build with the version of package.json. */
declare const PICOD_VERSION: string | undefined;
/** Replaced by the build with the commit of its sources. */
declare const PICOD_COMMIT: string | undefined;

export const version = typeof PICOD_VERSION === "string" ? PICOD_VERSION : "0.0.0-development";

/** What `picod --version --json` prints: what runs, exactly. */
export interface VersionDetails {
  readonly version: string;
  /** Of the sources, 40 hex digits; with `-dirty` when they were changed since; null when the build could not know. */
  readonly commit: string | null;
  readonly node: string;
  readonly platform: NodeJS.Platform;
  /** `x64` or `arm64`. */
  readonly arch: NodeJS.Architecture;
  /** The C library that is in use: a package's own, else the system's. Its version is null for musl, which does not tell. */
  readonly libc: { readonly name: "glibc" | "musl"; readonly version: string | null };
}

export function versionDetails(): VersionDetails {
  const commit = typeof PICOD_COMMIT === "string" && PICOD_COMMIT !== "" ? PICOD_COMMIT : null;
  const { version: node, platform, arch } = process;
  const glibc = runtimeGlibcVersion();
  const libc = { name: glibc === null ? "musl" : "glibc", version: glibc } as const;
  return { version, commit, node: node.slice(1), platform, arch, libc };
}

function runtimeGlibcVersion(): string | null {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? null;
}
