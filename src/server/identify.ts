import { Code } from "@connectrpc/connect";
import { isMatch, type RouteMatch } from "../api/http-route.js";
import type { SignedUrls } from "../auth/signed-urls.js";
import { bearerToken } from "../auth/token.js";
import { ANYBODY_INSECURELY, type Caller, DAEMON_TOKEN } from "../call.js";
import type { Realm, Verdict } from "../refusal.js";
import { cleanPath, decodeUrlPath } from "../url-path.js";
import type { RequestHandling } from "./gate.js";
import type { HttpRequest } from "./http-types.js";
import { queryOf } from "./plain-http.js";
import type { Upgrade } from "./upgrade.js";

/** Where a request shows who sends it: its token first, then what its path takes besides, then the certificate of its connection. */
export function identify(
  handling: RequestHandling,
  request: HttpRequest,
  realm: Realm | undefined,
  upgrade: Upgrade | undefined,
  plain: RouteMatch | readonly string[] | undefined,
): Verdict | Promise<Verdict> {
  const { verifier, authenticator } = handling;
  const { authorization } = request.headers;
  if (verifier?.verify(authorization)) return { caller: DAEMON_TOKEN };
  const token = authenticator === undefined ? undefined : bearerToken(authorization);
  const known = token === undefined ? undefined : authenticator?.identify(token);
  if (known instanceof Promise) {
    // AgentCube's tokens are JWTs, too, and others know them.
    return known.then((verdict) =>
      "caller" in verdict
        ? verdict
        : (askRealm(handling, request, realm) ?? redeem(handling, request, upgrade, plain) ?? verdict),
    );
  }
  if (known !== undefined && "caller" in known) return known;
  const ofConnection = showsToken(authorization) ? undefined : authenticator?.identifyConnection(request.socket);
  if (ofConnection !== undefined && "caller" in ofConnection) return ofConnection;
  const ofRealm = askRealm(handling, request, realm);
  if (ofRealm !== undefined) return ofRealm;
  if (verifier === undefined) return { caller: ANYBODY_INSECURELY };
  return redeem(handling, request, upgrade, plain) ?? known ?? ofConnection ?? NO_TOKEN;
}

/** A name alone, as E2B's clients send it to say who acts, proves nothing and is meant to prove nothing. */
function showsToken(authorization: string | undefined): boolean {
  return authorization !== undefined && !/^basic /i.test(authorization);
}

const NO_TOKEN: Verdict = {
  refusal: {
    code: Code.Unauthenticated,
    message: "missing or wrong access token: expected the header Authorization: Bearer <token>",
    status: 401,
    headers: { "www-authenticate": "Bearer" },
  },
};

function askRealm(
  { verifier, authenticator }: RequestHandling,
  request: HttpRequest,
  realm: Realm | undefined,
): Verdict | Promise<Verdict> | undefined {
  return realm?.judge?.(request, {
    open: verifier === undefined,
    identify: (token) => (verifier?.verify(`Bearer ${token}`) ? { caller: DAEMON_TOKEN } : authenticator?.identify(token)),
    current: (caller) => authenticator?.current(caller) ?? { caller },
  });
}

/** Whoever has asked for the ticket, or signed the address, that a request carries. */
function redeem(
  { tickets, signedUrls, authenticator }: RequestHandling,
  request: HttpRequest,
  upgrade: Upgrade | undefined,
  plain: RouteMatch | readonly string[] | undefined,
): Verdict | undefined {
  const owner = upgrade === undefined ? undefined : tickets.redeem(queryOf(request).get("ticket") ?? "");
  if (owner !== undefined) return { caller: owner };
  const signer = isMatch(plain) ? signerOf(signedUrls, plain, request) : undefined;
  if (signer === undefined) return undefined;
  const now = authenticator?.current(signer) ?? { caller: signer };
  if ("refusal" in now) return now;
  const { name, scopes, pathPrefixes = signer.pathPrefixes, capabilityName } = now.caller;
  const both = new Set([...signer.scopes].filter((scope) => scopes.has(scope)));
  return {
    caller: {
      name,
      how: "signature",
      scopes: both,
      ...(pathPrefixes === undefined ? {} : { pathPrefixes }),
      ...(capabilityName === undefined ? {} : { capabilityName }),
    },
  };
}

function signerOf(signedUrls: SignedUrls, { route, parameters }: RouteMatch, request: HttpRequest): Caller | undefined {
  const query = queryOf(request);
  if (!route.isSignable || !query.has("signature")) return undefined;
  const path = tryDecode(parameters.path ?? "");
  if (path === undefined) return undefined;
  return signedUrls.redeem({ method: request.method ?? "", path: cleanPath(path), user: query.get("user") ?? "" }, query);
}

function tryDecode(path: string): string | undefined {
  try {
    return decodeUrlPath(path);
  } catch {
    return undefined;
  }
}
