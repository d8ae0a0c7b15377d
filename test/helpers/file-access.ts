import type { Access } from "../../src/filesystem/access.js";
import { type ReadFileOptions, readFile } from "../../src/filesystem/read-file.js";
import { FileWriter, type WriteFileOptions, type WriteFileResult } from "../../src/filesystem/write-file.js";
import { Root } from "../../src/os/root.js";
import { UserDatabase } from "../../src/os/users.js";
import { GlobRules, type GrantedPaths } from "../../src/policy/glob-rules.js";

/** File operations as a user, root by default. */
export function accessAs(user = "root", root = "/"): Access {
  const users = new UserDatabase();
  const found = users.find(user);
  if (found === undefined) throw new Error(`no user ${user}`);
  return { root: new Root(root), user: found, users };
}

/** Writes a file in one chunk, as an upload would. */
export async function writeWhole(
  access: Access,
  path: string,
  content: string | Uint8Array,
  options: WriteFileOptions = {},
): Promise<WriteFileResult> {
  const writer = new FileWriter(access, path, options);
  try {
    await writer.write(typeof content === "string" ? Buffer.from(content) : content);
    return await writer.commit();
  } finally {
    writer.close();
  }
}

/** Reads a file and checks the order of the events. */
export async function readWhole(
  access: Access,
  path: string,
  options: ReadFileOptions = {},
): Promise<{ content: Buffer; sha256: string }> {
  const chunks: Buffer[] = [];
  let kinds = "";
  let sha256 = "";
  for await (const event of readFile(access, path, options)) {
    kinds += event.kind[0];
    if (event.kind === "chunk") chunks.push(Buffer.from(event.chunk));
    if (event.kind === "summary") ({ sha256 } = event);
  }
  if (!/^oc*s$/.test(kinds)) throw new Error(`events out of order: ${kinds}`);
  return { content: Buffer.concat(chunks), sha256 };
}

/** The same with paths that a policy grants, `~` being the user's home. */
export function accessGranted(
  granted: Partial<Omit<GrantedPaths, "capability">>,
  user = "root",
  { root = "/", prefixes }: { root?: string; prefixes?: readonly string[] } = {},
): Access {
  const access = accessAs(user, root);
  const { readPaths = [], writePaths = [], deniedPaths = [], maxFileSizeBytes } = granted;
  const rules = new GlobRules({ capability: "tested", readPaths, writePaths, deniedPaths, maxFileSizeBytes }, access.user.home);
  return { ...access, root: new Root(access.root, prefixes, rules) };
}
