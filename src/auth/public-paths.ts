/** gRPC health must answer probes, and reflection describes a published schema; neither touches the sandbox. */
const PUBLIC_SERVICES = [
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];
const PUBLIC_ROUTES = ["/healthz", "/readyz", "/health"];

export function isPublicProcedure(path: string): boolean {
  return PUBLIC_SERVICES.some((service) => path.startsWith(`/${service}/`));
}

/** What is served without a token. `path` has no query. */
export function isPublicPath(path: string, metricsPublic: boolean): boolean {
  return PUBLIC_ROUTES.includes(path) || isPublicProcedure(path) || (metricsPublic && path === "/metrics");
}
