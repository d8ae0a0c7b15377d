import { ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { Health } from "../gen/grpc/health/v1/health_pb.js";

/** Names the run of the daemon that answers; in a request, the one that is meant. */
export const INSTANCE_HEADER = "x-picod-instance";

/** Knows which run of the daemon the client talks to: what makes repeating safe is known to one run alone. */
export class Instance {
  #id: string | undefined;
  #learning: Promise<unknown> | undefined;

  /** Every answer says it. */
  readonly interceptor: Interceptor = (next) => async (request) => {
    try {
      const response = await next(request);
      this.#id = response.header.get(INSTANCE_HEADER) ?? this.#id;
      return response;
    } catch (error) {
      this.#id = ConnectError.from(error).metadata.get(INSTANCE_HEADER) ?? this.#id;
      throw error;
    }
  };

  /** Asks the daemon when nothing has been heard of it yet. Undefined when it does not say. */
  async learn(transport: Transport): Promise<string | undefined> {
    if (this.#id !== undefined) return this.#id;
    this.#learning ??= createClient(Health, transport)
      .check({})
      .finally(() => {
        this.#learning = undefined;
      });
    await this.#learning;
    return this.#id;
  }
}
