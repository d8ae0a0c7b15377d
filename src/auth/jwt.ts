import { createPublicKey, type KeyObject } from "node:crypto";

const RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const LEEWAY_SECONDS = 60;

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

/** Checks tokens that somebody else issues. */
export class JwtVerifier {
  readonly #key: KeyObject;
  readonly #audience: string | undefined;

  /** @param audience what the claim `aud` must hold; undefined does not look at it. */
  constructor(key: KeyObject, audience: string | undefined) {
    this.#key = key;
    this.#audience = audience;
  }

  /** Undefined when the token is good: signed with RSA, not expired, not from the future; else why it is not. */
  async refusal(token: string): Promise<string | undefined> {
    // Loaded with the first token: most daemons never see one.
    const { jwtVerify } = await import("jose");
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: RSA_ALGORITHMS,
        requiredClaims: ["exp"],
        clockTolerance: LEEWAY_SECONDS,
        ...(this.#audience === undefined ? {} : { audience: this.#audience }),
      });
      const isFromFuture = (payload.iat ?? 0) > Date.now() / 1000 + LEEWAY_SECONDS;
      return isFromFuture ? "token used before issued" : undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }
}
