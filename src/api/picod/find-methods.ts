import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import type { FileKind } from "../../filesystem/entry-info.js";
import { type FindOptions, find } from "../../filesystem/find.js";
import { type SearchOptions, search } from "../../filesystem/search.js";
import type { LineMatch } from "../../filesystem/searching/line-searcher.js";
import { Slots } from "../../filesystem/searching/slots.js";
import {
  type FilesystemService,
  FileType,
  type FindRequest,
  type SearchMatchSchema,
  type SearchRequest,
} from "../../gen/picod/v1/filesystem_pb.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";

const NS_PER_SECOND = 1_000_000_000n;
const UNLIMITED = Number.POSITIVE_INFINITY;
const DEFAULT_MATCHES = 1000n;
const DEFAULT_LINE_BYTES = 1024;
const MAX_LINE_BYTES = 64 * 1024;
const MAX_CONTEXT_LINES = 100;
/** Each has a thread; more wait for one of them to end. */
const SEARCHES_AT_ONCE = 4;

/** The part of picod.v1.FilesystemService that looks for files. */
export function createFindMethods(sandbox: Sandbox): Pick<ServiceImpl<typeof FilesystemService>, "find" | "search"> {
  const slots = new Slots(SEARCHES_AT_ONCE);
  return {
    async *find(request: FindRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      for await (const event of find(access, path, toFindOptions(request), context.signal)) {
        if (event.kind === "entries") {
          yield { entries: event.entries.map(toEntryInfo) };
          continue;
        }
        const { matched, visited, unreadableCount, unreadable } = event;
        const counts = { matched: BigInt(matched), visited: BigInt(visited), unreadableCount: BigInt(unreadableCount) };
        yield { summary: { ...counts, unreadable: [...unreadable] } };
      }
    },

    async *search(request: SearchRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      for await (const event of search(access, path, toSearchOptions(request), slots, context.signal)) {
        if (event.kind === "match") {
          yield { event: { case: "match", value: toMatch(event.path, event.match) } };
          continue;
        }
        const { totals, unreadableCount, unreadable } = event;
        const value = {
          matchedLines: BigInt(totals.matchedLines),
          matchedFiles: BigInt(totals.matchedFiles),
          searchedFiles: BigInt(totals.searchedFiles),
          binaryFiles: BigInt(totals.binaryFiles),
          searchedBytes: BigInt(totals.searchedBytes),
          truncated: totals.truncated,
          unreadableCount: BigInt(unreadableCount),
          unreadable: [...unreadable],
        };
        yield { event: { case: "summary", value } };
      }
    },
  };
}

function toMatch(path: string, match: LineMatch): MessageInitShape<typeof SearchMatchSchema> {
  const { lineNumber, line, offset, ranges, before, after, truncated } = match;
  return {
    path,
    lineNumber: BigInt(lineNumber),
    line,
    offset: BigInt(offset),
    matches: ranges.map(([start, end]) => ({ start: BigInt(start), end: BigInt(end) })),
    before: [...before],
    after: [...after],
    lineTruncated: truncated,
  };
}

function toSearchOptions(request: SearchRequest): SearchOptions {
  const { pattern, regex, ignoreCase, include, exclude, gitignore, skipHidden, contextBefore, contextAfter, countOnly } = request;
  const { maxMatches = DEFAULT_MATCHES, maxMatchesPerFile, maxLineBytes = DEFAULT_LINE_BYTES } = request;
  if (contextBefore > MAX_CONTEXT_LINES || contextAfter > MAX_CONTEXT_LINES) {
    throw new PicodError("INVALID_ARGUMENT", `invalid context: at most ${MAX_CONTEXT_LINES} lines before and after`);
  }
  if (maxLineBytes > MAX_LINE_BYTES) {
    throw new PicodError("INVALID_ARGUMENT", `invalid max_line_bytes: ${maxLineBytes}: at most ${MAX_LINE_BYTES}`);
  }
  return {
    patterns: { include, exclude, gitignore, skipHidden },
    pattern,
    regex,
    ignoreCase,
    contextBefore,
    contextAfter,
    maxMatches: Number(maxMatches),
    maxMatchesPerFile: maxMatchesPerFile === 0n ? UNLIMITED : Number(maxMatchesPerFile),
    maxLineBytes,
    countOnly,
  };
}

function toFindOptions(request: FindRequest): FindOptions {
  const { include, exclude, gitignore, skipHidden, types, minSize, maxSize, depth, maxResults } = request;
  return {
    patterns: { include, exclude, gitignore, skipHidden },
    kinds: types.map(toKind),
    minSize,
    maxSize,
    modifiedSinceNs: toNanoseconds(request.modifiedSince),
    modifiedBeforeNs: toNanoseconds(request.modifiedBefore),
    maxDepth: depth === 0 ? UNLIMITED : depth,
    maxResults: maxResults === 0n ? UNLIMITED : Number(maxResults),
  };
}

function toKind(type: FileType): FileKind {
  switch (type) {
    case FileType.FILE:
      return "file";
    case FileType.DIRECTORY:
      return "directory";
    case FileType.SYMLINK:
      return "symlink";
    case FileType.FIFO:
      return "fifo";
    case FileType.SOCKET:
      return "socket";
    case FileType.CHARACTER_DEVICE:
      return "character-device";
    case FileType.BLOCK_DEVICE:
      return "block-device";
    default:
      throw new PicodError("INVALID_ARGUMENT", `invalid type: ${type}`);
  }
}

function toNanoseconds(time: { readonly seconds: bigint; readonly nanos: number } | undefined): bigint | undefined {
  if (time === undefined) return undefined;
  if (time.nanos < 0 || time.nanos >= Number(NS_PER_SECOND)) {
    throw new PicodError("INVALID_ARGUMENT", `invalid time: ${time.nanos} nanoseconds are not from 0 to 999,999,999`);
  }
  return time.seconds * NS_PER_SECOND + BigInt(time.nanos);
}
