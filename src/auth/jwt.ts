import { createPublicKey, type KeyObject } from "node:crypto";
import type { JWTPayload, JWTVerifyGetKey } from "jose";

const RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

/** By so much clocks may differ. */
export const LEEWAY_SECONDS = 60;

/** The RSA public key of a PEM. @throws Error whose message completes "invalid value for …: ". */
export function parseRsaPublicKey(pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw new Error("it is not a public key in PEM");
  }
  if (key.asymmetricKeyType !== "rsa") throw new Error(`it is a key for ${key.asymmetricKeyType}, not for RSA`);
  return key;
}

/** What a token must be signed with and say. */
export interface JwtExpectations {
  /** The key, or what finds it by the token's header. */
  readonly key: KeyObject | JWTVerifyGetKey;
  readonly algorithms: readonly string[];
  /** What the claim `aud` must hold; undefined does not look at it. */
  readonly audience: string | undefined;
}

/** The claims of a good token: signed so, not expired, not from the future. @throws Error saying why it is not good. */
export async function verifyJwt(token: string, { key, algorithms, audience }: JwtExpectations): Promise<JWTPayload> {
  // Loaded with the first token: most daemons never see one.
  const { jwtVerify } = await import("jose");
  const options = {
    algorithms: [...algorithms],
    requiredClaims: ["exp"],
    clockTolerance: LEEWAY_SECONDS,
    ...(audience === undefined ? {} : { audience }),
  };
  const { payload } = await (typeof key === "function" ? jwtVerify(token, key, options) : jwtVerify(token, key, options));
  if ((payload.iat ?? 0) > Date.now() / 1000 + LEEWAY_SECONDS) throw new Error("token used before issued");
  return payload;
}

/** Checks tokens that AgentCube's router issues. */
export class JwtVerifier {
  readonly #expectations: JwtExpectations;

  constructor(key: KeyObject, audience: string | undefined) {
    this.#expectations = { key, algorithms: RSA_ALGORITHMS, audience };
  }

  /** The claims of a good token. @throws Error saying why it is not good. */
  verify(token: string): Promise<JWTPayload> {
    return verifyJwt(token, this.#expectations);
  }
}
