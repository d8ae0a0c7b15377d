import { randomUUID } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { MoveMode, type WriteFileRequest } from "../../../src/gen/picod/v1/filesystem_pb.js";
import type { Clients } from "../../helpers/clients.js";

/** One operation; paths are below the tree that it is done in. */
export type Step = { readonly path: string } & (
  | { readonly kind: "makeDirectory"; readonly mode?: number; readonly mustNotExist: boolean }
  | { readonly kind: "write"; readonly mode?: number; readonly offset?: number; readonly content: string }
  | { readonly kind: "upload"; readonly mode?: number; readonly content: string; readonly cut: number }
  | { readonly kind: "move"; readonly to: string; readonly mode: keyof typeof MOVE_MODES }
  | { readonly kind: "copy"; readonly to: string; readonly mustNotExist: boolean }
  | { readonly kind: "remove"; readonly recursive: boolean; readonly missingOk: boolean }
  | { readonly kind: "setAttributes"; readonly mode?: number; readonly seconds?: number; readonly noFollow: boolean }
  | { readonly kind: "archive"; readonly to: string; readonly gzip: boolean }
  | { readonly kind: "read" }
  | { readonly kind: "list"; readonly depth: number }
  /** Done by plain calls in both trees. */
  | { readonly kind: "link"; readonly to: string }
  | { readonly kind: "symlink"; readonly target: string }
);

const MOVE_MODES = { replace: MoveMode.UNSPECIFIED, free: MoveMode.NO_REPLACE, exchange: MoveMode.EXCHANGE } as const;

/** What both trees begin with. */
export const BEGINNING: readonly Step[] = [
  { kind: "makeDirectory", path: "a/b", mustNotExist: false },
  { kind: "write", path: "a/c", content: "a file" },
  { kind: "write", path: "b", content: "another", mode: 0o640 },
  { kind: "makeDirectory", path: "c", mustNotExist: false },
  { kind: "link", path: "a/c", to: "c/a" },
  { kind: "symlink", path: "d", target: "a" },
  { kind: "symlink", path: "a/d", target: "../b" },
  { kind: "symlink", path: "c/d", target: "missing/b" },
];

/** Few names, so that steps meet each other. */
const anyPath = fc
  .array(fc.constantFrom("a", "b", "c", "d", "e"), { minLength: 1, maxLength: 3, size: "max" })
  .map((names) => names.join("/"));
/** More often one that is there in the beginning, */
const path = fc.oneof(anyPath, fc.constantFrom("a", "a/b", "a/c", "b", "c", "c/a", "d/c"), fc.constantFrom("a", "b", "c", "e"));
/** or that is free. */
const newPath = fc.oneof(path, fc.constantFrom("e", "f", "a/e", "a/b/f", "c/e", "d/f", "e/f"));
const content = fc.string({ minLength: 1, maxLength: 12 });
const mode = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0o755, 0o700, 0o750) },
  { weight: 2, arbitrary: fc.constantFrom(0o644, 0o600, 0o444, 0o555, 0o500, 0o300, 0o111, 0) },
);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });

/** A sequence of steps. */
export function steps(maxLength: number): fc.Arbitrary<Step[]> {
  const kind = <K extends Step["kind"]>(name: K) => fc.constant(name);
  const step = fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        kind: kind("makeDirectory"),
        path: newPath,
        mode: optional(fc.oneof(mode, fc.constant(0o2755))),
        mustNotExist: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: kind("write"), path: newPath, mode: optional(mode), content }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("write"), path: newPath, offset: fc.nat(14), content }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("upload"), path: newPath, mode: optional(mode), content, cut: fc.nat(12) }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: kind("move"), path, to: newPath, mode: fc.constantFrom("replace", "free", "exchange") }),
    },
    { weight: 4, arbitrary: fc.record({ kind: kind("copy"), path, to: newPath, mustNotExist: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("remove"), path, recursive: fc.boolean(), missingOk: fc.boolean() }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: kind("setAttributes"),
        path,
        mode: optional(mode),
        seconds: optional(fc.integer({ min: 1, max: 1_000_000_000 })),
        noFollow: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: kind("archive"), path, to: newPath, gzip: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: kind("read"), path }) },
    { weight: 1, arbitrary: fc.record({ kind: kind("list"), path, depth: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ kind: kind("link"), path, to: newPath }) },
  );
  return fc.array(step, { minLength: 1, maxLength, size: "max" }) as fc.Arbitrary<Step[]>;
}

/** Does a step through the service. Resolves with what was read, if that is what it does. */
export async function request({ filesystem }: Clients, root: string, step: Step): Promise<unknown> {
  const at = join(root, step.path);
  switch (step.kind) {
    case "makeDirectory":
      return void (await filesystem.makeDirectory({ ...step, path: at }));
    case "write":
      return void (await filesystem.writeFile(file({ path: at, mode: step.mode, offset: step.offset }, step.content)));
    case "upload":
      return upload(filesystem, at, step);
    case "move":
      return void (await filesystem.move({ source: at, destination: join(root, step.to), mode: MOVE_MODES[step.mode] }));
    case "copy":
      return void (await filesystem.copy({ source: at, destination: join(root, step.to), mustNotExist: step.mustNotExist }));
    case "remove":
      return void (await filesystem.remove({ ...step, path: at }));
    case "setAttributes": {
      const time = step.seconds === undefined ? {} : { modifiedTime: { seconds: BigInt(step.seconds) } };
      return void (await filesystem.setAttributes({ path: at, mode: step.mode, noFollowSymlinks: step.noFollow, ...time }));
    }
    case "archive":
      return archive(filesystem, at, join(root, step.to), step.gzip);
    case "read": {
      const chunks: Uint8Array[] = [];
      for await (const { response } of filesystem.readFile({ path: at }))
        if (response.case === "chunk") chunks.push(response.value);
      return Buffer.concat(chunks).toString();
    }
    case "list": {
      const lines: string[] = [];
      for await (const { entries } of filesystem.listDirectory({ path: at, depth: step.depth }))
        lines.push(...entries.map((entry) => `${entry.path.slice(at.length + 1)} ${entry.mode.toString(8)}`));
      return lines;
    }
    default:
      throw new Error(`no request does ${step.kind}`);
  }
}

interface Metadata {
  readonly path: string;
  readonly mode?: number | undefined;
  readonly offset?: number | undefined;
  readonly uploadId?: string;
}

async function* file({ path, mode, offset, uploadId = "" }: Metadata, content: string) {
  const more = { ...(mode === undefined ? {} : { mode }), ...(offset === undefined ? {} : { offset: BigInt(offset) }) };
  yield { request: { case: "metadata" as const, value: { path, uploadId, ...more } } };
  yield { request: { case: "chunk" as const, value: Buffer.from(content) } } satisfies { request: WriteFileRequest["request"] };
}

/** The end first. */
async function upload(filesystem: Clients["filesystem"], path: string, step: Step & { kind: "upload" }): Promise<void> {
  const whole = Buffer.from(step.content);
  const parts = [whole.subarray(step.cut), whole.subarray(0, step.cut)] as const;
  const uploadId = randomUUID();
  let begun = false;
  try {
    for (const [index, part] of parts.entries()) {
      const metadata = { path, uploadId, ...(step.mode === undefined ? {} : { mode: step.mode }) };
      const offset = BigInt(index === 0 ? Math.min(step.cut, whole.length) : 0);
      await filesystem.writeFile(partOf({ ...metadata, offset }, part));
      begun = true;
    }
    await filesystem.commitUpload({ uploadId, size: BigInt(whole.length) });
  } catch (error) {
    if (begun) await filesystem.abortUpload({ uploadId });
    throw error;
  }
}

async function* partOf(value: { path: string; uploadId: string; mode?: number; offset: bigint }, part: Uint8Array<ArrayBuffer>) {
  yield { request: { case: "metadata" as const, value } };
  yield { request: { case: "chunk" as const, value: part } };
}

/** Out, and in again elsewhere: in place only where nothing is, since what another archive would leave of a directory is not of interest. */
async function archive(filesystem: Clients["filesystem"], path: string, to: string, gzip: boolean): Promise<void> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const { response } of filesystem.readArchive({ path: `${path}/`, gzip }))
    if (response.case === "chunk") chunks.push(response.value as Uint8Array<ArrayBuffer>);
  // A dangling link too: only as a whole a directory is made where that leads.
  const isTaken = lstatSync(to, { throwIfNoEntry: false }) !== undefined;
  async function* sent() {
    yield { request: { case: "metadata" as const, value: { path: to, atomic: isTaken || gzip } } };
    for (const value of chunks) yield { request: { case: "chunk" as const, value } };
  }
  await filesystem.writeArchive(sent());
}
