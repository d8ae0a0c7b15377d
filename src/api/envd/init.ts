import type { Caller } from "../../call.js";
import type { HttpExchange } from "../http-route.js";
import { isSameSecret } from "./secret.js";
import type { EnvdState } from "./state.js";
import { readText } from "./text-body.js";

/** The version of E2B's daemon whose contract this is. */
export const ENVD_VERSION = "0.6.13";
const HEADERS = { "x-envd-version": ENVD_VERSION };

interface Initialisation {
  readonly accessToken: string | undefined;
  readonly envVars: Readonly<Record<string, string>> | undefined;
  readonly defaultUser: string;
  readonly defaultWorkdir: string;
  /** Undefined: always newer. */
  readonly timestampNs: bigint | undefined;
}

/** POST /init: what an orchestrator tells a new sandbox. Its token, once set, can only be sent again. */
export class Init {
  readonly #state: EnvdState;
  #lastNs: bigint | undefined;

  constructor(state: EnvdState) {
    this.#state = state;
  }

  async handle(exchange: HttpExchange): Promise<void> {
    const { send } = exchange;
    const body = parse(await readText(exchange));
    if (body === undefined) {
      send(400, HEADERS, "");
      return;
    }
    const { accessToken } = this.#state;
    if (accessToken !== undefined && (body.accessToken === undefined || !isSameSecret(accessToken, body.accessToken))) {
      const why = body.accessToken === undefined ? "access token reset not authorized" : "access token validation failed";
      send(401, { ...HEADERS, "content-type": "text/plain; charset=utf-8" }, why);
      return;
    }
    this.#apply(body, exchange.call.caller);
    send(204, HEADERS, "");
  }

  #apply({ accessToken, envVars, defaultUser, defaultWorkdir, timestampNs }: Initialisation, caller: Caller | undefined): void {
    if (timestampNs !== undefined && this.#lastNs !== undefined && timestampNs < this.#lastNs) return;
    this.#lastNs = timestampNs ?? this.#lastNs;
    // Sent again it stays the token of whoever has set it.
    if (accessToken !== undefined && this.#state.accessToken === undefined) {
      this.#state.accessToken = accessToken;
      this.#state.tokenSetBy = caller;
    }
    if (envVars !== undefined) this.#state.envVars = envVars;
    if (defaultUser !== "") this.#state.defaultUser = defaultUser;
    if (defaultWorkdir !== "") this.#state.defaultWorkdir = defaultWorkdir;
  }
}

/** Undefined for what is no such object. */
function parse(text: string): Initialisation | undefined {
  try {
    const body: unknown = text.trim() === "" ? {} : JSON.parse(text);
    if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
    const fields = body as Record<string, unknown>;
    const names = ["accessToken", "defaultUser", "defaultWorkdir", "timestamp"] as const;
    if (names.some((name) => fields[name] !== undefined && fields[name] !== null && typeof fields[name] !== "string"))
      return undefined;
    const { accessToken, defaultUser, defaultWorkdir, timestamp, envVars } = fields as Record<string, string | undefined>;
    const timestampNs = timestamp === undefined || timestamp === null ? undefined : toNs(timestamp);
    if (accessToken === "" || timestampNs === "invalid" || !isTextMap(envVars)) return undefined;
    return {
      accessToken: accessToken ?? undefined,
      envVars: envVars ?? undefined,
      defaultUser: defaultUser ?? "",
      defaultWorkdir: defaultWorkdir ?? "",
      timestampNs,
    };
  } catch {
    return undefined;
  }
}

function isTextMap(value: unknown): value is Record<string, string> | undefined {
  if (value === undefined || value === null) return true;
  return typeof value === "object" && !Array.isArray(value) && Object.values(value).every((each) => typeof each === "string");
}

/** RFC 3339, to the nanosecond. */
function toNs(timestamp: string): bigint | "invalid" {
  const [, seconds, fraction = "", zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/.exec(timestamp) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? "invalid" : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}
