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
  const isHome = /^~(?:\/|$)/.test(glob);
  const names = (isHome ? glob.slice(1) : glob).split("/").filter((name) => name !== "");
  const isWhole = names.at(-1) === "**";
  if (isWhole) names.pop();
  if ((!isHome && !glob.startsWith("/")) || names.some((name) => /[*?[\]\\]/.test(name))) return undefined;
  const path = [...(isHome ? home.split("/").filter((name) => name !== "") : []), ...names].join("/");
  return { path: `/${path}`, isWhole };
}

/** Those of the globs that grant something to a user with that home directory: `~` of no home, or of a home that is everything, is nothing. */
export function grantsAt(globs: readonly string[], home: string): readonly string[] {
  const names = home.split("/").filter((name) => name !== "");
  const isHome = home.startsWith("/") && names.length > 0 && !names.some((name) => name === "." || name === "..");
  return isHome ? globs : globs.filter((glob) => !glob.startsWith("~"));
}

export function toHierarchies(globs: readonly string[], home: string): Hierarchy[] {
  return grantsAt(globs, home)
    .map((glob) => toHierarchy(glob, home))
    .filter((hierarchy) => hierarchy !== undefined);
}

/** Whether it covers that path. */
export function covers({ path, isWhole }: Hierarchy, candidate: string): boolean {
  return candidate === path || (isWhole && candidate.startsWith(path === "/" ? "/" : `${path}/`));
}
