/** For a policy: a capability that may do everything, but with files only where the glob is. */
export function unlimitedWithin(capability: string, glob: string): string {
  return `
[capabilities.${capability}.permissions.filesystem]
read_paths = ["${glob}"]
write_paths = ["${glob}"]
[capabilities.${capability}.permissions.shell]
[capabilities.${capability}.permissions.network]
allowed_domains = ["*"]
`;
}
