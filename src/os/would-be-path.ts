/** MAXSYMLINKS of Linux. */
const MAX_LINKS = 40;

/**
 * Where a path leads that cannot be opened, as far as its directories are there; undefined when nobody can say. For what the caller is told:
 * nothing is opened by the answer.
 * @param readLink the target of a link, empty for what is none, undefined for what cannot be opened.
 */
export function wouldBePath(path: string, readLink: (path: string) => string | undefined): string | undefined {
  let links = 0;
  let reached: string[] = [];
  const ahead = path.split("/").filter(isName);
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "..") {
      reached.pop();
      continue;
    }
    reached.push(name);
    const target = readLink(`/${reached.join("/")}`);
    if (target === undefined) return ahead.includes("..") ? undefined : `/${[...reached, ...ahead].join("/")}`;
    if (target === "") continue;
    if (++links > MAX_LINKS) return undefined;
    reached = target.startsWith("/") ? [] : reached.slice(0, -1);
    ahead.unshift(...target.split("/").filter(isName));
  }
  return `/${reached.join("/")}`;
}

function isName(name: string): boolean {
  return name !== "" && name !== ".";
}
