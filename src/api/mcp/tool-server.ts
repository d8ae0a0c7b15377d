import { isUtf8 } from "node:buffer";
import { Code, ConnectError } from "@connectrpc/connect";
import { describeRequirement, fulfils, type Requirement } from "../../auth/scopes.js";
import type { Call, Caller } from "../../call.js";
import { codeName } from "../../errors/code-name.js";
import { PicodError } from "../../errors/picod-error.js";
import { toConnectError } from "../../errors/to-connect-error.js";
import { noteDenial } from "../../policy/denial.js";
import { missingPermission } from "../../policy/permissions.js";
import { policyDenied } from "../../policy/policy-denied.js";
import { type LimitSettings, limitsOf } from "./limits.js";
import { sessionIdOfOutput } from "./sessions/kept-outputs.js";
import type { SandboxSessions } from "./sessions/sandbox-sessions.js";
import { type RequestMeta, sessionIdOf } from "./sessions/session-key.js";
import { type ToolFailure, toFailure } from "./tool-failure.js";
import { callerOf } from "./tools/caller.js";
import type { Progress, Tool, ToolResult } from "./tools/tool.js";

/** Says what does not fit a JSON Schema; undefined when all of it does. */
export type Validate = (value: unknown) => string | undefined;

/** Gives a tool call an account of its own: a line in the log and in the audit log, a metric, a step of the trace. Never rejects. */
export type RunSubcall = (parent: Call, procedure: string, run: (call: Call) => Promise<void>) => Promise<void>;

export interface ToolServerParts {
  readonly tools: readonly Tool[];
  readonly sessions: SandboxSessions;
  readonly limits: LimitSettings;
  readonly runSubcall: RunSubcall;
  readonly compileSchema: (schema: object) => Validate;
}

/** One request of a client, whatever brought it. */
export interface ToolRequest {
  readonly call: Call;
  readonly meta: RequestMeta;
  /** The session of whoever names none. */
  readonly ownSessionId: string;
  readonly abortSignal: AbortSignal;
  /** Resolves when the answer has left; undefined: as soon as there is one. */
  readonly answered?: Promise<void> | undefined;
  readonly onProgress: ((progress: Progress) => void) | undefined;
}

export type ToolAnswer = { readonly result: ToolResult } | { readonly failure: ToolFailure };

export interface ReadResource {
  readonly uri: string;
  readonly name: string;
  readonly content: Buffer;
  readonly isText: boolean;
}

/** Printed by commands: whoever may run them may read it. */
const RESOURCES_REQUIRE: Requirement = "process";

/** What MCP's server does with tools and resources, without the protocol: over HTTP and on stdio it is the same. */
export class ToolServer {
  readonly #parts: ToolServerParts;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #validators = new Map<string, Validate>();

  constructor(parts: ToolServerParts) {
    this.#parts = parts;
    this.#tools = new Map(parts.tools.map((tool) => [tool.name, tool]));
  }

  /** Those that a caller may use. */
  list(caller: Caller | undefined): Tool[] {
    return [...this.#tools.values()].filter(({ requires }) => caller !== undefined && mayUse(caller, requires));
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Runs a tool. Never rejects: what goes wrong is an answer. */
  async call(name: string, input: object, request: ToolRequest): Promise<ToolAnswer> {
    let answer: ToolAnswer | undefined;
    const made = Promise.withResolvers<void>();
    const { answered = made.promise } = request;
    await this.#parts.runSubcall(request.call, `mcp/${name}`, async (call) => {
      answer = await this.#answer(call, request.abortSignal, () => this.#run(name, input, { ...request, call, answered }));
    });
    made.resolve();
    return answer ?? { failure: toFailure(new ConnectError("internal error", Code.Internal)) };
  }

  /** Outputs that the session of a request has kept. */
  listResources({ call, meta, ownSessionId }: ToolRequest): ReadResource[] {
    const caller = callerOf(call);
    if (!mayUse(caller, RESOURCES_REQUIRE)) return [];
    const session = this.#parts.sessions.find(caller, sessionIdOf(meta) ?? ownSessionId);
    return (session?.outputs.list() ?? []).map((output) => ({ ...output, isText: isUtf8(output.content) }));
  }

  /** Undefined when the caller has no such output. */
  async readResource(uri: string, { call: parent }: ToolRequest): Promise<ReadResource | undefined> {
    let found: ReadResource | undefined;
    await this.#parts.runSubcall(parent, "mcp/resources/read", async (call) => {
      call.subject = { paths: [uri], command: undefined, user: undefined };
      const caller = callerOf(call);
      const mayRead = mayUse(caller, RESOURCES_REQUIRE);
      const output = mayRead ? this.#parts.sessions.find(caller, sessionIdOfOutput(uri))?.outputs.find(uri) : undefined;
      call.code = codeName(mayRead ? Code.NotFound : Code.PermissionDenied);
      if (output === undefined) return;
      call.code = "ok";
      found = { ...output, isText: isUtf8(output.content) };
    });
    return found;
  }

  async #answer(call: Call, abortSignal: AbortSignal, run: () => Promise<ToolResult>): Promise<ToolAnswer> {
    try {
      const result = await run();
      call.code = "ok";
      return { result };
    } catch (error) {
      const cancelled = abortSignal.aborted && !(error instanceof PicodError);
      const failure = cancelled
        ? new ConnectError("the call was cancelled", Code.Canceled)
        : toConnectError(error, call.requestId);
      noteDenial(call, error);
      call.code = codeName(failure.code);
      call.cause = failure.cause;
      return { failure: toFailure(failure) };
    }
  }

  async #run(name: string, input: object, request: ToolRequest): Promise<ToolResult> {
    const { call, meta, ownSessionId, abortSignal, answered, onProgress } = request;
    const caller = callerOf(call);
    const tool = this.#tools.get(name);
    if (tool === undefined) throw new PicodError("INVALID_ARGUMENT", `no such tool: ${name}`);
    if (!fulfils(caller.scopes, tool.requires)) {
      const message = `${name} needs the scope ${describeRequirement(tool.requires)}, which ${caller.name} does not have`;
      throw new PicodError("SCOPE_MISSING", message);
    }
    const { capability } = caller;
    const missing = capability && missingPermission(capability, tool.requires);
    if (capability !== undefined && missing !== undefined)
      throw policyDenied(capability, missing, name, `it does not grant ${missing}`);
    const problem = this.#validatorOf(tool)(input);
    if (problem !== undefined) throw new PicodError("INVALID_ARGUMENT", `invalid arguments of ${name}: ${problem}`);
    const subject = tool.subject?.(input);
    if (subject !== undefined) call.subject = subject;
    abortSignal.throwIfAborted();
    const { sessions, limits } = this.#parts;
    const id = sessionIdOf(meta) ?? ownSessionId;
    const whenNotOpen = () => tool.whenNotOpen?.(input, id);
    return sessions.use({ caller, id, abortSignal, whenNotOpen }, async (session, sessionCreated) => {
      const signal = AbortSignal.any([abortSignal, session.endedSignal]);
      const waitForRoom = async () => {
        const slot = await session.largeAnswers.take(signal);
        void leftOrAborted(answered, signal).then(() => slot[Symbol.dispose]());
      };
      const common = { session, sessionCreated, call, limits: limitsOf(limits, caller), onProgress, waitForRoom };
      return tool.run(input, { ...common, callerSignal: abortSignal, abortSignal: signal });
    });
  }

  #validatorOf({ name, inputSchema }: Tool): Validate {
    const known = this.#validators.get(name);
    if (known !== undefined) return known;
    const compiled = this.#parts.compileSchema(inputSchema);
    this.#validators.set(name, compiled);
    return compiled;
  }
}

/** Who has cancelled is not answered: then nothing ever leaves. */
async function leftOrAborted(left: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onAbort = () => resolve();
  signal.addEventListener("abort", onAbort);
  void left?.then(resolve);
  await promise;
  signal.removeEventListener("abort", onAbort);
}

/** By its scopes, and by what the policy grants it. */
function mayUse({ scopes, capability }: Caller, requirement: Requirement): boolean {
  return fulfils(scopes, requirement) && (capability === undefined || missingPermission(capability, requirement) === undefined);
}
