import { Code } from "@connectrpc/connect";
import type { JwtVerifier } from "../../auth/jwt.js";
import { capabilityOf } from "../../auth/jwt-callers.js";
import type { Scope } from "../../auth/scopes.js";
import { ANYBODY_INSECURELY, type Caller } from "../../call.js";
import type { Realm, Verdict } from "../../refusal.js";

const WHY_NO_HEADER = { error: "Missing Authorization header", detail: "Request requires JWT authentication" };
const WHY_NO_BEARER = { error: "Invalid Authorization header format", detail: "Use Bearer <token>" };

const ROUTER: Caller = {
  name: "agentcube",
  how: "jwt",
  // All that the routes below /api/ ask for.
  scopes: new Set<Scope>(["process", "files:read", "files:write"]),
};

/** AgentCube's routes take the JWTs of its router; its own way of saying no. Without a verifier only the daemon's token is taken. */
export function createAgentCubeRealm(verifier: JwtVerifier | undefined): Realm {
  return {
    covers: (_method, path) => path.startsWith("/api/"),
    async judge({ headers: { authorization } }, { open }) {
      if (open && verifier === undefined) return { caller: ANYBODY_INSECURELY };
      if (authorization === undefined) return refusal(WHY_NO_HEADER);
      const token = /^Bearer (\S+)$/.exec(authorization)?.[1];
      if (token === undefined) return refusal(WHY_NO_BEARER);
      try {
        if (verifier === undefined) throw new Error("no public key is configured");
        return { caller: { ...ROUTER, ...capabilityOf(await verifier.verify(token)) } };
      } catch (error) {
        return refusal({ error: "Invalid token", detail: `JWT verification failed: ${(error as Error).message}` });
      }
    },
  };
}

function refusal(body: { error: string; detail: string }): Verdict {
  return { refusal: { code: Code.Unauthenticated, message: body.error, status: 401, body: { ...body, code: 401 } } };
}
