import { fstatSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { PicodError } from "../../errors/picod-error.js";
import { createLinePattern } from "./line-pattern.js";
import { type LineMatch, LineSearcher } from "./line-searcher.js";
import type { SearchAnswer, SearchQuestion, SearchThreadOptions } from "./search-thread.js";

/** What goes to the main thread at once. */
const ANSWER_MATCHES = 256;
const ANSWER_LENGTH = 1024 * 1024;

type Unreadable = SearchAnswer["unreadable"][number];

/** Entry of the thread that reads and matches, so that no pattern and no file can keep the main thread from its calls. */
async function main(): Promise<void> {
  if (parentPort === null) throw new Error("not a worker thread");
  const port = parentPort;
  const options: SearchThreadOptions = workerData;
  let searcher: LineSearcher;
  try {
    searcher = new LineSearcher(await createLinePattern(options), options);
  } catch (error) {
    if (!(error instanceof PicodError)) throw error;
    port.once("message", () => port.postMessage({ invalid: { message: error.message, metadata: error.metadata } }));
    return;
  }
  let unreadable: Unreadable[] = [];
  let found = searchAll(searcher, [], unreadable);
  port.on("message", ({ files }: SearchQuestion) => {
    if (files !== undefined) found = searchAll(searcher, files, unreadable);
    const matches: SearchAnswer["matches"] = [];
    let [length, done] = [0, false];
    while (!done && matches.length < ANSWER_MATCHES && length < ANSWER_LENGTH) {
      const next = found.next();
      done = next.done === true;
      if (next.done) break;
      matches.push(next.value);
      length += lengthOf(next.value.match);
    }
    port.postMessage({ matches, unreadable, totals: searcher.totals, done } satisfies SearchAnswer);
    unreadable = [];
  });
}

function* searchAll(searcher: LineSearcher, fds: readonly number[], unreadable: Unreadable[]) {
  for (const [file, fd] of fds.entries()) {
    try {
      const stats = fstatSync(fd);
      // It became something else after its name was read.
      if (!stats.isFile()) continue;
      // The kernel does not know the size of what it makes up: those files are read to their end.
      for (const match of searcher.search(fd, stats.size || Number.POSITIVE_INFINITY)) yield { file, match };
    } catch (error) {
      const { errno } = error as NodeJS.ErrnoException;
      if (errno === undefined) throw error;
      unreadable.push({ file, errno: -errno });
    }
  }
}

function lengthOf({ line, before, after, ranges }: LineMatch): number {
  const context = [...before, ...after].reduce((sum, text) => sum + text.length, 0);
  return line.length + context + 16 * ranges.length;
}

void main();
