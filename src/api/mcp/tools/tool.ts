import type { Requirement } from "../../../auth/scopes.js";
import type { Call, CallSubject } from "../../../call.js";
import type { Limits } from "../limits.js";
import type { SandboxSession } from "../sessions/sandbox-session.js";

/** A JSON Schema, draft 2020-12, of an object. */
export interface ObjectSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: string[];
  readonly additionalProperties?: boolean;
}

/** What clients are told of a tool besides what it takes and returns. */
export interface ToolAnnotations {
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  /** For the model that chooses it. */
  readonly description: string;
  /** What it asks of callers. */
  readonly requires: Requirement;
  readonly inputSchema: ObjectSchema;
  readonly outputSchema: ObjectSchema;
  readonly annotations: ToolAnnotations;
  /** What a call is about, for the audit log. */
  subject?(input: object): CallSubject;
  /** What it answers where the session is not open; left out, or undefined: the call opens it. */
  whenNotOpen?(input: object, sessionId: string): ToolResult | undefined;
  /** Its input fits its schema. What it throws is told to the model. */
  run(input: object, context: ToolContext): Promise<ToolResult> | ToolResult;
}

/** One call of a tool. */
export interface ToolContext {
  /** What file names count from, and what processes belong to. */
  readonly session: SandboxSession;
  /** The session did not exist before this call. */
  readonly sessionCreated: boolean;
  readonly call: Call;
  readonly limits: Limits;
  /** Aborted when the caller cancels or has gone, or the session ends. */
  readonly abortSignal: AbortSignal;
  /** The same, whatever becomes of the session. */
  readonly callerSignal: AbortSignal;
  /** To be awaited before an answer of more than a MiB is made: few of those are in memory at once, until they have left. */
  readonly waitForRoom: () => Promise<void>;
  /** Undefined when the caller did not ask to be told how far it is. */
  readonly onProgress: ((progress: Progress) => void) | undefined;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface ToolResult {
  /** Fits the output schema. */
  readonly structured: object;
  readonly links?: readonly ResourceLink[];
}

/** Something that the caller may read with `resources/read`. */
export interface ResourceLink {
  readonly uri: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
  /** Bytes. */
  readonly size: number;
}
