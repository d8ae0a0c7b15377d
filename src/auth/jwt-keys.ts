import { createPublicKey, type JsonWebKeyInput, type KeyObject } from "node:crypto";
import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { readConfigFile } from "../config-file.js";
import type { JwtExpectations } from "./jwt.js";
import { ConfigError } from "./token.js";

const MAX_KEY_FILE_BYTES = 1024 * 1024;
const MIN_RSA_BITS = 2048;
const EDDSA = ["EdDSA", "Ed25519"];

/** Where the keys are that JWTs are verified with. */
export interface JwtKeyFile {
  readonly path: string;
  readonly kind: "pem" | "jwks";
}

export type JwtKeys = Pick<JwtExpectations, "key" | "algorithms">;

/** @throws ConfigError naming the file and why it cannot be used. */
export async function readJwtKeys({ path, kind }: JwtKeyFile): Promise<JwtKeys> {
  const { text } = readConfigFile(path, "the keys of JWTs", MAX_KEY_FILE_BYTES);
  try {
    return kind === "pem" ? keysOfPem(text) : await keysOfJwks(text);
  } catch (error) {
    throw new ConfigError(`cannot use the keys of JWTs in ${path}: ${(error as Error).message}`, { cause: error });
  }
}

function keysOfPem(pem: string): JwtKeys {
  if (/PRIVATE KEY-----/.test(pem)) throw new Error("it holds a private key; the public one is what the daemon needs");
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw new Error("it is not a public key in PEM");
  }
  return { key, algorithms: algorithmsOf(key) };
}

async function keysOfJwks(text: string): Promise<JwtKeys> {
  const set = parseJwks(text);
  const algorithms = new Set<string>();
  const usable = set.keys.filter((jwk) => {
    if (jwk.kty === "oct" || "d" in jwk || "k" in jwk)
      throw new Error("it holds a secret key; public ones are what the daemon needs");
    try {
      for (const algorithm of algorithmsOf(createPublicKey({ key: jwk as JsonWebKeyInput["key"], format: "jwk" })))
        algorithms.add(algorithm);
      return true;
    } catch {
      // A set is often for others too, who want other keys.
      return false;
    }
  });
  if (usable.length === 0) throw new Error("it holds no key for RS256, ES256 or EdDSA");
  const { createLocalJWKSet } = await import("jose");
  const key: JWTVerifyGetKey = createLocalJWKSet({ keys: usable });
  return { key, algorithms: [...algorithms] };
}

function parseJwks(text: string): JSONWebKeySet {
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  const { keys } = (set ?? {}) as { keys?: unknown };
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === "object" && key !== null))
    throw new Error('expected {"keys": […]}');
  return { keys };
}

/** What may be verified with a key, and nothing besides: the token does not choose. @throws Error for other kinds of keys. */
function algorithmsOf(key: KeyObject): readonly string[] {
  const { asymmetricKeyType: type, asymmetricKeyDetails: { modulusLength = 0, namedCurve } = {} } = key;
  if (type === "rsa" && modulusLength >= MIN_RSA_BITS) return ["RS256"];
  if (type === "ec" && namedCurve === "prime256v1") return ["ES256"];
  if (type === "ed25519") return EDDSA;
  const what = type === "rsa" ? `RSA of ${modulusLength} bits` : type === "ec" ? `the curve ${namedCurve}` : type;
  throw new Error(`a key for ${what} is none for RS256 (2,048 bits at least), ES256 or EdDSA (Ed25519)`);
}
