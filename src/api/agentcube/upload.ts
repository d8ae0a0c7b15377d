import type { Caller } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { FileWriter } from "../../filesystem/write-file.js";
import { formBoundary, formParts } from "../files/multipart.js";
import type { HttpExchange } from "../http-route.js";
import { decodeBase64 } from "./base64.js";
import { goMode } from "./go-mode.js";
import { goTime } from "./go-time.js";
import { jsonMembers } from "./json-members.js";
import type { Workspace } from "./workspace.js";

/** Of content that comes before its path: it waits in memory. In its customary order it may have any size. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
const MAX_FIELD_BYTES = 64 * 1024;
const DEFAULT_MODE = 0o644;

/** POST /api/files: a file as base64 in JSON, or as a form. Whole, or not at all. */
export async function uploadFile(workspace: Workspace, exchange: HttpExchange): Promise<void> {
  const { request, call, abortSignal, sendJson } = exchange;
  const boundary = formBoundary(request.headers["content-type"]);
  using upload = new Upload(workspace, call.caller, (path) => {
    call.subject = { paths: [path], command: undefined, user: undefined };
  });
  if (boundary === undefined) await takeJson(upload, exchange.body);
  else await takeForm(upload, exchange.bodyInBulk(), boundary);
  abortSignal.throwIfAborted();
  const entry = await upload.commit();
  sendJson(200, {
    path: entry.path.slice(1),
    size: Number(entry.size),
    mode: goMode(entry),
    modified: goTime(entry.modifiedTimeNs),
  });
}

async function takeJson(upload: Upload, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const member of jsonMembers(body, "content")) {
    if ("pieces" in member) await upload.takeContent(decodeBase64(member.pieces));
    else if (member.name === "content" && member.value !== null) throw wrong("content must be a string of base64");
    else upload.takeField(member.name, member.value);
  }
  // An empty string is what a client sends that has forgotten it.
  if (upload.bytes === 0) throw wrong("Missing 'content' field");
}

async function takeForm(upload: Upload, body: AsyncIterable<Uint8Array>, boundary: string): Promise<void> {
  let found = false;
  for await (const { name = "", content } of formParts(body, boundary)) {
    if (name === "file" && !found) {
      found = true;
      await upload.takeContent(content);
    } else if (name === "path" || name === "mode") {
      upload.takeField(name, await toText(content));
    }
  }
  upload.assertNamed();
  if (!found) throw wrong("Failed to get file: http: no such file");
}

/** What has arrived of one file: its fields may come in any order. */
class Upload implements Disposable {
  readonly #workspace: Workspace;
  readonly #caller: Caller | undefined;
  readonly #onPath: (path: string) => void;
  readonly #waiting: Uint8Array[] = [];
  #path: string | undefined;
  #mode: number | undefined;
  #writer: FileWriter | undefined;
  bytes = 0;

  constructor(workspace: Workspace, caller: Caller | undefined, onPath: (path: string) => void) {
    this.#workspace = workspace;
    this.#caller = caller;
    this.#onPath = onPath;
  }

  /** `path` and `mode`; the first of each counts. @throws INVALID_ARGUMENT. */
  takeField(name: string, value: unknown): void {
    if ((name !== "path" && name !== "mode") || value === null) return;
    if (typeof value !== "string") throw wrong(`${name} must be a string`);
    if (name === "mode") {
      this.#mode ??= toMode(value);
    } else if (this.#path === undefined) {
      this.#path = value;
      this.#onPath(value);
    }
  }

  async takeContent(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.bytes > 0) throw wrong("there is more than one content");
    for await (const chunk of chunks) {
      this.bytes += chunk.length;
      if (this.#path !== undefined) {
        await this.#open().write(chunk);
        continue;
      }
      if (this.bytes > MAX_WAITING_BYTES) throw wrong("'path' must come before a file of this size");
      this.#waiting.push(Uint8Array.from(chunk));
    }
  }

  /** @throws INVALID_ARGUMENT without a path. */
  assertNamed(): void {
    if ((this.#path ?? "") === "") throw wrong("Missing 'path' field");
  }

  /** Makes the file visible. */
  async commit(): Promise<EntryInfo> {
    const writer = this.#open();
    for (const chunk of this.#waiting.splice(0)) await writer.write(chunk);
    return (await writer.commit(this.#mode)).entry;
  }

  [Symbol.dispose](): void {
    this.#writer?.close();
  }

  #open(): FileWriter {
    if (this.#writer !== undefined) return this.#writer;
    this.assertNamed();
    const access = this.#workspace.access(this.#caller);
    this.#writer = new FileWriter(access, this.#workspace.resolve(access, this.#path ?? ""), {});
    return this.#writer;
  }
}

/** What is no mode is the default. Undefined keeps that of a file that is replaced. */
function toMode(text: string): number | undefined {
  if (text === "") return undefined;
  const mode = /^[0-7]{1,11}$/.test(text) ? Number.parseInt(text, 8) : DEFAULT_MODE;
  return mode > 0o777 ? DEFAULT_MODE : mode;
}

async function toText(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > MAX_FIELD_BYTES) throw wrong("a field of the form is too long");
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks).toString("utf8");
}

function wrong(why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", why);
}
