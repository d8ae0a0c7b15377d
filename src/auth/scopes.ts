import type { DescService } from "@bufbuild/protobuf";

/** What a caller may be allowed to do. None of them includes another. */
export const SCOPES = ["files:read", "files:write", "process", "process:read", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * What an RPC or a route asks of its caller: one scope, or nothing (`public`). `files` is either of the two for files, and `any` whichever
 * it is: which of them is a matter of the request, and its handler asks for that one.
 */
export type Requirement = Scope | "files" | "any" | "public";

/** What each method of a service asks for; one that is left out does not compile. */
export type MethodRequirements<T extends DescService> = { readonly [Method in keyof T["method"]]: Requirement };

export const ALL_SCOPES: ReadonlySet<Scope> = new Set(SCOPES);
export const NO_SCOPES: ReadonlySet<Scope> = new Set();

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}

export function fulfils(scopes: ReadonlySet<Scope>, requirement: Requirement): boolean {
  if (requirement === "public") return true;
  if (requirement === "files") return scopes.has("files:read") || scopes.has("files:write");
  if (requirement === "any") return scopes.size > 0;
  return scopes.has(requirement);
}

/** For messages: "files:read", or "files:read or files:write". */
export function describeRequirement(requirement: Requirement): string {
  if (requirement === "any") return SCOPES.join(" or ");
  return requirement === "files" ? "files:read or files:write" : requirement;
}

/** The paths of methods: "/picod.v1.ProcessService/Execute". The service need not be described for it. */
export function rpcPaths<T extends DescService>(serviceName: string, methods: readonly (keyof T["method"] & string)[]): string[] {
  return methods.map((name) => `/${serviceName}/${name.charAt(0).toUpperCase()}${name.slice(1)}`);
}

/** The requirements of a service, by path. */
export function requirementsByPath<T extends DescService>(
  serviceName: string,
  requirements: MethodRequirements<T>,
): [path: string, requirement: Requirement][] {
  const methods = Object.keys(requirements) as (keyof T["method"] & string)[];
  return rpcPaths<T>(serviceName, methods).map((path, index) => [path, requirements[methods[index] as keyof T["method"]]]);
}
