import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The code block of a page of this repository that is behind its marker. */
export function example(page: string, name: string): string {
  const text = readFileSync(join(import.meta.dirname, "../..", page), "utf8");
  const found = new RegExp(`executed by test/[\\w.]+: ${name} -->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(text)?.[1];
  if (found === undefined) throw new Error(`${page} has no example ${name}`);
  return found;
}
