import { hash } from "node:crypto";
import type { JWTPayload } from "jose";
import type { Caller } from "../call.js";
import type { Verdict } from "../refusal.js";
import { unauthenticated, unlessExpired } from "./authenticator.js";
import { LEEWAY_SECONDS, verifyJwt } from "./jwt.js";
import type { JwtKeys } from "./jwt-keys.js";
import { parsePathPrefixes } from "./path-prefixes.js";
import { isScope, type Scope } from "./scopes.js";

/** A private claim (RFC 7519, section 4.3): the paths that file operations are confined to. */
const PATHS_CLAIM = "picod_paths";
/** A private claim: the capability of the policy that its caller has. */
export const CAPABILITY_CLAIM = "picod_capability";
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const MAX_JWT_LENGTH = 8 * 1024;
/** Good tokens that are remembered: verifying one takes some 100 µs, and clients send the same all the time. */
const MAX_REMEMBERED = 1_000;
const MAX_NAME_LENGTH = 200;

/** Callers who bring a JWT that somebody else has issued for this sandbox. */
export class JwtCallers {
  readonly #audience: string;
  #keys: JwtKeys;
  /** By the digest of the token, oldest first. */
  #remembered = new Map<string, Caller>();

  constructor(keys: JwtKeys, audience: string) {
    this.#keys = keys;
    this.#audience = audience;
  }

  /** Tokens count from now on if they are signed with these. */
  replaceKeys(keys: JwtKeys): void {
    this.#keys = keys;
    this.#remembered = new Map();
  }

  /** Undefined: it is no JWT. */
  identify(token: string): Verdict | undefined | Promise<Verdict> {
    if (!JWT.test(token)) return undefined;
    if (token.length > MAX_JWT_LENGTH) return refused(`it is longer than ${MAX_JWT_LENGTH} characters`);
    const digest = hash("sha256", token);
    const remembered = this.#remembered.get(digest);
    return remembered === undefined ? this.#verify(token, digest) : unlessExpired(remembered);
  }

  async #verify(token: string, digest: string): Promise<Verdict> {
    const remembered = this.#remembered;
    try {
      const caller = toCaller(await verifyJwt(token, { ...this.#keys, audience: this.#audience }));
      // Of keys that were replaced meanwhile it is one nobody looks into any longer.
      const [oldest] = remembered.keys();
      if (remembered.size >= MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      remembered.set(digest, caller);
      return { caller };
    } catch (error) {
      return refused((error as Error).message);
    }
  }
}

function refused(why: string): Verdict {
  return { refusal: unauthenticated(`the JWT does not count: ${why}`) };
}

/** @throws Error for claims of ours that are malformed: they are never passed over. */
function toCaller(payload: JWTPayload): Caller {
  const { sub, client_id: clientId, exp = 0 } = payload;
  const name = [sub, clientId].find((each): each is string => typeof each === "string" && each !== "") ?? "jwt";
  const scopes = parseScopeClaim(payload.scope);
  const paths = payload[PATHS_CLAIM];
  return {
    name: name.slice(0, MAX_NAME_LENGTH).replace(/\p{C}/gu, "?"),
    how: "jwt",
    scopes,
    ...(paths === undefined ? {} : { pathPrefixes: parsePathPrefixes(paths, scopes) }),
    ...capabilityOf(payload),
    expiresAtMs: (exp + LEEWAY_SECONDS) * 1000,
  };
}

/** Whether there is one of that name is a matter of the policy that is in force when it is used. @throws Error when it is malformed. */
export function capabilityOf({ [CAPABILITY_CLAIM]: name }: JWTPayload): Pick<Caller, "capabilityName"> {
  if (name === undefined) return {};
  if (typeof name !== "string" || name === "") throw new Error(`"${CAPABILITY_CLAIM}" claim is not the name of a capability`);
  return { capabilityName: name };
}

/** Separated by spaces (RFC 8693, section 4.2), or a list. Those of other services are passed over. */
function parseScopeClaim(claim: unknown): ReadonlySet<Scope> {
  const texts = typeof claim === "string" ? claim.split(" ") : (claim ?? []);
  if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string"))
    throw new Error('"scope" claim is no text and no list of texts');
  return new Set(texts.filter(isScope));
}
