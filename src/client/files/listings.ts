import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  EntryInfo,
  FilesystemService,
  FindRequestSchema,
  FindSummary,
  ListDirectoryRequestSchema,
  SearchMatch,
  SearchRequestSchema,
  SearchSummary,
  UnreadableEntry,
} from "../../gen/picod/v1/filesystem_pb.js";
import type { Connection } from "../transport.js";
import { type Batch, type Results, results } from "./results.js";
import { inTreeOrder } from "./tree-order.js";

type Filesystem = Client<typeof FilesystemService>;
interface Cancellable {
  readonly signal?: AbortSignal;
}

export type ListOptions = Omit<MessageInitShape<typeof ListDirectoryRequestSchema>, "path" | "$typeName"> & Cancellable;
export type FindOptions = Omit<MessageInitShape<typeof FindRequestSchema>, "path" | "$typeName"> & Cancellable;
export type SearchOptions = Omit<MessageInitShape<typeof SearchRequestSchema>, "path" | "pattern" | "$typeName"> & Cancellable;

export interface ListSummary {
  /** Directories below that could not be read. */
  readonly unreadable: readonly UnreadableEntry[];
}

const byPath = (a: EntryInfo, b: EntryInfo) => inTreeOrder(a.path, b.path);

export function list(
  filesystem: Filesystem,
  connection: Connection,
  path: string,
  { signal, ...request }: ListOptions,
): Results<EntryInfo, ListSummary> {
  async function* ask(options: CallOptions): AsyncGenerator<Batch<EntryInfo, ListSummary>> {
    const unreadable: UnreadableEntry[] = [];
    for await (const response of filesystem.listDirectory({ ...request, path }, options)) {
      unreadable.push(...response.unreadable);
      yield { items: response.entries };
    }
    yield { items: [], summary: { unreadable } };
  }
  return results(connection, signal, ask, byPath);
}

export function find(
  filesystem: Filesystem,
  connection: Connection,
  path: string,
  { signal, ...request }: FindOptions,
): Results<EntryInfo, FindSummary> {
  async function* ask(options: CallOptions): AsyncGenerator<Batch<EntryInfo, FindSummary>> {
    for await (const { entries, summary } of filesystem.find({ ...request, path }, options)) yield { items: entries, summary };
  }
  return results(connection, signal, ask, byPath);
}

export function search(
  filesystem: Filesystem,
  connection: Connection,
  path: string,
  pattern: string,
  { signal, ...request }: SearchOptions,
): Results<SearchMatch, SearchSummary> {
  async function* ask(options: CallOptions): AsyncGenerator<Batch<SearchMatch, SearchSummary>> {
    for await (const { event } of filesystem.search({ ...request, path, pattern }, options)) {
      if (event.case === "match") yield { items: [event.value] };
      if (event.case === "summary") yield { items: [], summary: event.value };
    }
  }
  const inOrder = (a: SearchMatch, b: SearchMatch) => inTreeOrder(a.path, b.path) || Number(a.lineNumber - b.lineNumber);
  return results(connection, signal, ask, inOrder);
}
