/**
 * Whether a symbolic link at a path below a directory leads below it, whatever other links of this kind are there: it is relative, and
 * `..` comes only where its own directories are left.
 */
export function leadsInside(components: readonly string[], target: string): boolean {
  if (target === "" || target.startsWith("/")) return false;
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const down = steps.findIndex((step) => step !== "..");
  const up = down < 0 ? steps.length : down;
  return up < components.length && !steps.slice(up).includes("..");
}
