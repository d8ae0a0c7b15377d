import { find } from "../../../filesystem/find.js";
import { search } from "../../../filesystem/search.js";
import { Slots } from "../../../filesystem/searching/slots.js";
import type { UnreadableEntry } from "../../../filesystem/walking/unreadable.js";
import type { Sandbox } from "../../../sandbox.js";
import { type NamedPath, resolveSessionPath } from "../sessions/session-paths.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool, ToolContext } from "./tool.js";

const DEFAULT_RESULTS = 100;
/** More than a model can be given. */
const MAX_RESULTS = 1000;
const MAX_LINE_BYTES = 512;
const MAX_CONTEXT_LINES = 10;
const MAX_UNREADABLE = 20;
/** Each has a thread; more wait for one of them to end. */
const SEARCHES_AT_ONCE = 2;
const UNLIMITED = Number.POSITIVE_INFINITY;

interface SearchInput {
  readonly pattern?: string;
  readonly path?: string;
  readonly regex?: boolean;
  readonly ignore_case?: boolean;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly gitignore?: boolean;
  readonly skip_hidden?: boolean;
  readonly context_lines?: number;
  readonly max_results?: number;
}

const GLOBS = { type: "array", items: { type: "string", minLength: 1 }, maxItems: 100 };
const LINES = { type: "array", items: { type: "string" } };

/** Looks for text in files, or for files by their names. */
export function createSearchTool(sandbox: Sandbox): Tool {
  const slots = new Slots(SEARCHES_AT_ONCE);
  return {
    name: "sandbox_fs_search",
    title: "Search files",
    description:
      "Searches the files below a directory, or one file, for lines that hold a text or match an RE2 expression; without a pattern it lists " +
      "the entries whose names match the globs. Globs without a slash match at any depth. Binary files are skipped.",
    requires: "files:read",
    inputSchema: {
      type: "object",
      properties: {
        pattern: { type: "string", minLength: 1, description: "Text to look for in each line; left out: names alone." },
        path: { ...PATH, default: "." },
        regex: { type: "boolean", default: false, description: "The pattern is an RE2 expression." },
        ignore_case: { type: "boolean", default: false },
        include: { ...GLOBS, description: "Such as *.ts or src/**; one has to match." },
        exclude: { ...GLOBS, description: "What is left out, with all that is in it." },
        gitignore: { type: "boolean", default: false, description: "Leave out .git and what .gitignore files name." },
        skip_hidden: { type: "boolean", default: false, description: "Leave out names that begin with a dot." },
        context_lines: { type: "integer", minimum: 0, maximum: MAX_CONTEXT_LINES, default: 0 },
        max_results: { type: "integer", minimum: 1, maximum: MAX_RESULTS, default: DEFAULT_RESULTS },
      },
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        matches: {
          type: "array",
          description: "There when a pattern was given.",
          items: {
            type: "object",
            properties: {
              path: { type: "string", description: "Absolute." },
              line: { type: "integer", description: "From 1." },
              text: { type: "string" },
              text_truncated: { type: "boolean", description: "It is a part of the line, around the match." },
              before: LINES,
              after: LINES,
            },
            required: ["path", "line", "text"],
          },
        },
        entries: {
          type: "array",
          description: "There when no pattern was given.",
          items: {
            type: "object",
            properties: {
              path: { type: "string", description: "Absolute." },
              type: { type: "string" },
              size_bytes: { type: "integer", description: "Of files." },
            },
            required: ["path", "type"],
          },
        },
        total: { type: "integer", description: "Matching lines, or entries, those that are left out included." },
        searched_files: { type: "integer" },
        binary_files: { type: "integer", description: "Skipped." },
        truncated: { type: "boolean", description: "There are more than are shown." },
        unreadable: { type: "array", items: { type: "string" }, description: "What could not be looked into, and why." },
        unreadable_count: { type: "integer" },
      },
      required: ["total", "truncated"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    subject: ofPath,
    async run(input: SearchInput, context: ToolContext) {
      const place = resolveSessionPath(sandbox, context.session, context.call.caller, input.path ?? ".");
      const { pattern } = input;
      if (pattern === undefined) return { structured: await findEntries(place, input, context) };
      return { structured: await searchLines(place, { ...input, pattern }, context, slots) };
    },
  };
}

async function searchLines(
  place: NamedPath,
  input: SearchInput & { readonly pattern: string },
  { abortSignal }: ToolContext,
  slots: Slots,
): Promise<object> {
  const { pattern, regex = false, ignore_case: ignoreCase = false, context_lines: context = 0 } = input;
  const { max_results: maxMatches = DEFAULT_RESULTS } = input;
  const limits = { maxMatches, maxMatchesPerFile: UNLIMITED, maxLineBytes: MAX_LINE_BYTES, countOnly: false };
  const options = { patterns: patternsOf(input), pattern, regex, ignoreCase, contextBefore: context, contextAfter: context };
  const matches: object[] = [];
  for await (const event of search(place.access, place.path, { ...options, ...limits }, slots, abortSignal)) {
    if (event.kind === "match") {
      const { lineNumber, line, before, after, truncated } = event.match;
      matches.push({
        path: shownPath(place, event.path),
        line: lineNumber,
        text: line,
        ...(truncated && { text_truncated: true }),
        ...(before.length > 0 && { before }),
        ...(after.length > 0 && { after }),
      });
      continue;
    }
    const { matchedLines: total, searchedFiles, binaryFiles, truncated } = event.totals;
    const counts = { total, searched_files: searchedFiles, binary_files: binaryFiles, truncated };
    return { matches, ...counts, ...unreadableOf(place, event) };
  }
  throw new Error("a search ends with its summary");
}

async function findEntries(place: NamedPath, input: SearchInput, { abortSignal }: ToolContext): Promise<object> {
  const { max_results: maxResults = DEFAULT_RESULTS } = input;
  const anything = { minSize: undefined, maxSize: undefined, modifiedSinceNs: undefined, modifiedBeforeNs: undefined };
  const options = { ...anything, patterns: patternsOf(input), kinds: [], maxDepth: UNLIMITED, maxResults };
  const entries: object[] = [];
  for await (const event of find(place.access, place.path, options, abortSignal)) {
    if (event.kind === "entries") {
      for (const { path, kind, size } of event.entries) {
        entries.push({ path: shownPath(place, path), type: kind, ...(kind === "file" && { size_bytes: Number(size) }) });
      }
      continue;
    }
    return { entries, total: event.matched, truncated: event.matched > entries.length, ...unreadableOf(place, event) };
  }
  throw new Error("a search ends with its summary");
}

const patternsOf = ({ include = [], exclude = [], gitignore = false, skip_hidden: skipHidden = false }: SearchInput) => ({
  include,
  exclude,
  gitignore,
  skipHidden,
});

/** What was found is below the path that was asked for. */
function shownPath({ path, shown }: NamedPath, found: string): string {
  return shown + found.slice(path.length);
}

interface Unread {
  readonly unreadable: readonly UnreadableEntry[];
  readonly unreadableCount: number;
}

function unreadableOf(place: NamedPath, { unreadable, unreadableCount }: Unread): object {
  if (unreadableCount === 0) return {};
  const named = unreadable.slice(0, MAX_UNREADABLE).map(({ path, message }) => `${shownPath(place, path)}: ${message}`);
  return { unreadable: named, unreadable_count: unreadableCount };
}
