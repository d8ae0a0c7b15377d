import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { INSTANCE_HEADER } from "./instance.js";
import { reasonOf } from "./reason-of.js";
import { Retries } from "./retries.js";
import type { Connection } from "./transport.js";

/** A daemon that is another one each time is several behind one address. */
const MAX_CHANGES = 3;

/**
 * Repeats a call that takes effect once however often it arrives, as long as it arrives at the same run of the daemon. The caller
 * loops: `headers` before each attempt, `after` when one has failed.
 */
export class Once {
  readonly #connection: Connection;
  readonly #retries: Retries;
  #expected: string | undefined;
  /** The daemon does not say which run it is: nothing that may have begun is repeated. */
  #cannotTell = false;
  #mayHaveRun = false;
  #changes = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#retries = new Retries(connection.closed);
  }

  /** For the next attempt: it goes to no other run than the first that may have begun with it. */
  async headers(): Promise<Record<string, string>> {
    this.#expected ??= await this.#connection.instance.learn(this.#connection.transport);
    this.#cannotTell = this.#expected === undefined;
    return this.#expected === undefined ? {} : { [INSTANCE_HEADER]: this.#expected };
  }

  /** Waits until the next attempt. @throws what repeating does not help, or would make happen twice. */
  async after(error: unknown, alsoFor?: Code): Promise<void> {
    if (reasonOf(error) !== "INSTANCE_CHANGED") {
      // Before it has learned whom it talks to, the attempt was a question.
      const isAttempt = this.#cannotTell || this.#expected !== undefined;
      this.#mayHaveRun ||= isAttempt && !neverBegan(error);
      if (this.#mayHaveRun && this.#cannotTell) throw error;
      return this.#retries.after(error, alsoFor);
    }
    if (this.#mayHaveRun) throw restarted(error);
    if (++this.#changes > MAX_CHANGES) throw error;
    this.#expected = ConnectError.from(error).metadata.get(INSTANCE_HEADER) ?? undefined;
  }
}

/** Whether the daemon did not get the request, or refused to begin with it. */
function neverBegan(error: unknown): boolean {
  const { code, cause } = ConnectError.from(error);
  const { syscall } = (cause ?? {}) as NodeJS.ErrnoException;
  if (syscall === "connect" || syscall === "getaddrinfo") return true;
  return code === Code.ResourceExhausted || reasonOf(error) === "SHUTTING_DOWN";
}

function restarted(cause: unknown): ConnectError {
  const message = "the daemon was restarted after the connection broke: it is unknown whether what was asked for has run";
  const info = { desc: ErrorInfoSchema, value: { reason: "INSTANCE_CHANGED", domain: "picod" } };
  return new ConnectError(message, Code.Aborted, undefined, [info], cause);
}
