import type { Duration } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ANYBODY, callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import type { CreateSignedUrlRequest, FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import { withFileRightsOf } from "../../os/credentials.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { cleanPath, decodeUrlPath, toUrlPath } from "../../url-path.js";
import { toTimestamp } from "../timestamp.js";

const DEFAULT_LIFETIME_MS = 5 * 60_000;
const MAX_LIFETIME_MS = 7 * 24 * 60 * 60_000;
const NS_PER_MS = 1_000_000n;

/** The part of picod.v1.FilesystemService that hands out addresses of plain HTTP. */
export function createSignedUrlMethods(sandbox: Sandbox): Pick<ServiceImpl<typeof FilesystemService>, "createSignedUrl"> {
  return {
    createSignedUrl(request: CreateSignedUrlRequest, context: HandlerContext) {
      const { user, singleUse } = request;
      const method = request.method === "" ? "GET" : request.method;
      if (method !== "GET" && method !== "PUT") throw invalid("method", `${JSON.stringify(method)} is neither GET nor PUT`);
      const [access, absolute] = resolveFile(sandbox, request, callerOf(context));
      const caller = callerOf(context) ?? ANYBODY;
      const scope = method === "GET" ? "files:read" : "files:write";
      if (!caller.scopes.has(scope)) {
        throw new PicodError("SCOPE_MISSING", `signing a ${method} needs the scope ${scope}, which ${caller.name} does not have`);
      }
      if (!access.root.mayHold(absolute)) {
        throw new PicodError("OUTSIDE_ROOT", `cannot sign ${absolute}: ${caller.name} is confined to other paths`, {
          path: absolute,
        });
      }
      // Whoever opens it is judged again, where it leads then.
      withFileRightsOf(access, () => access.root.assertMay(absolute, method === "GET" ? "read" : "write"));
      const path = toUrlPath(sandbox, absolute);
      const expiresAtMs = Date.now() + toLifetimeMs(request.lifetime);
      const query = sandbox.signedUrls.sign(
        { method, path: cleanPath(decodeUrlPath(path)), user },
        expiresAtMs,
        singleUse,
        caller,
      );
      return {
        url: `/v1/files/${path}?${query}`,
        expireTime: toTimestamp(BigInt(query.get("expires") ?? 0) * 1000n * NS_PER_MS),
      };
    },
  };
}

/** @throws INVALID_ARGUMENT. */
function toLifetimeMs(lifetime: Duration | undefined): number {
  if (lifetime === undefined) return DEFAULT_LIFETIME_MS;
  const lifetimeMs = Number(lifetime.seconds) * 1000 + lifetime.nanos / 1e6;
  if (lifetimeMs > 0 && lifetimeMs <= MAX_LIFETIME_MS) return lifetimeMs;
  throw invalid("lifetime", "expected more than 0 and at most 7 days");
}

function invalid(field: string, why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `invalid ${field}: ${why}`, { field });
}
