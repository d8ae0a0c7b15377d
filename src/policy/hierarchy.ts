/** What the kernel can hold a command to: one file, or a directory with all below it. */
export interface Hierarchy {
  readonly path: string;
  readonly isWhole: boolean;
}

/**
 * What a glob of `read_paths` or `write_paths` says to the kernel: `DIR/**` and exact paths. Undefined for any other, which only a
 * walk over names could follow.
 */
export function toHierarchy(glob: string, home: string): Hierarchy | undefined {
  const expanded = glob === "~" || glob.startsWith("~/") ? home.replace(/\/$/, "") + glob.slice(1) : glob;
  const isWhole = expanded.endsWith("/**");
  const path = isWhole ? expanded.slice(0, -3) || "/" : expanded;
  return path.startsWith("/") && !/[*?]/.test(path) ? { path, isWhole } : undefined;
}

/** Whether it covers that path. */
export function covers({ path, isWhole }: Hierarchy, candidate: string): boolean {
  return candidate === path || (isWhole && candidate.startsWith(path === "/" ? "/" : `${path}/`));
}
