import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { PICOD } from "../helpers/start-daemon.js";

const built = pathToFileURL(join(dirname(PICOD), "client/index.mjs")).href;

/** The client as it is shipped. */
export const { createClient, FileChangeKind, FileType, MoveMode }: typeof import("../../src/client/index.js") = await import(
  built
);
