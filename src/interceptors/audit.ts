import type { Interceptor } from "@connectrpc/connect";
import type { AuditLog } from "../audit/audit-log.js";
import { type Call, type CallSubject, callKey } from "../call.js";
import { withMessage } from "./with-message.js";

/** Notes on the call what it is about, from its first message: whatever the contract, paths and commands have few names. */
export function createAuditInterceptor(audit: AuditLog): Interceptor {
  return (next) => (request) => {
    const call = request.contextValues.get(callKey);
    if (!request.stream) {
      call.subject = subjectOf(request.message);
      return next(request);
    }
    return next(withMessage(request, noteFirst(request.message, call, audit)));
  };
}

async function* noteFirst<T>(messages: AsyncIterable<T>, call: Call, audit: AuditLog): AsyncIterable<T> {
  let isFirst = true;
  for await (const message of messages) {
    if (isFirst) call.subject = subjectOf(message);
    if (isFirst && call.subject?.command !== undefined) audit.callBegun(call);
    isFirst = false;
    yield message;
  }
}

const PATH_FIELDS = ["path", "source", "destination"];

type Fields = Readonly<Record<string, unknown>>;

/** Undefined for a message that names neither a path nor a command. */
export function subjectOf(message: unknown): CallSubject | undefined {
  const fields = message as Fields;
  // The first message of an upload: `oneof request { metadata, chunk }`.
  const { case: kind, value } = asFields(fields.request) ?? {};
  const own = kind === "metadata" ? (asFields(value) ?? fields) : fields;
  const paths = PATH_FIELDS.map((name) => own[name]).filter((path) => typeof path === "string" && path !== "") as string[];
  const command = commandOf(own);
  if (paths.length === 0 && command === undefined) return undefined;
  return { paths, command, user: typeof own.user === "string" && own.user !== "" ? own.user : undefined };
}

/** picod.v1: `command` or `argv`; sandboxd: `config.command`; envd: `process.cmd` with `process.args`. */
function commandOf({ command, argv, config, process }: Fields): CallSubject["command"] {
  if (typeof command === "string" && command !== "") return command;
  if (Array.isArray(argv) && argv.length > 0) return argv;
  const { command: program } = asFields(config) ?? {};
  if (Array.isArray(program)) return program;
  const { cmd, args } = asFields(process) ?? {};
  return typeof cmd === "string" && Array.isArray(args) ? [cmd, ...args] : undefined;
}

function asFields(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}
