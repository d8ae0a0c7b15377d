/** gRPC health must answer probes, and reflection describes a published schema; neither touches the sandbox. */
const PUBLIC_SERVICES = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];
const PUBLIC_ROUTES = ["/healthz", "/readyz", "/health", "/v1/health"];
/** A page without secrets, which asks for the token itself. */
const TERMINAL_PAGE = ["/terminal", "/terminal/terminal.js", "/terminal/terminal.css"];

/** What the configuration opens. */
export interface PublicOptions {
  readonly metricsPublic: boolean;
  readonly terminalPage: boolean;
}

export function isPublicProcedure(path: string): boolean {
  return PUBLIC_SERVICES.some((service) => path.startsWith(`/${service}/`));
}

/** What is served without a token. `path` has no query. */
export function isPublicPath(path: string, { metricsPublic, terminalPage }: PublicOptions): boolean {
  if (PUBLIC_ROUTES.includes(path) || isPublicProcedure(path)) return true;
  return (metricsPublic && path === "/metrics") || (terminalPage && TERMINAL_PAGE.includes(path));
}
