import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "../gen/grpc/health/v1/health_pb.js";
import type { Readiness } from "../readiness.js";

/** grpc.health.v1.Health for the daemon as a whole ("") and for each service by name. */
export function createHealthService(readiness: Readiness, serviceNames: readonly string[]): ServiceImpl<typeof Health> {
  const isKnown = (service: string) => service === "" || serviceNames.includes(service);
  const status = () => (readiness.ready ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!isKnown(service)) throw new ConnectError(`unknown service: ${service}`, Code.NotFound);
      return { status: status() };
    },

    async *watch({ service }, context: HandlerContext) {
      yield { status: isKnown(service) ? status() : Status.SERVICE_UNKNOWN };
      // Readiness changes once, when the daemon stops. A watcher would otherwise hold up the end of the others' calls.
      if (readiness.ready) await readiness.changed(context.signal, true);
      if (isKnown(service)) yield { status: status() };
      throw new ConnectError("the daemon is shutting down", Code.Unavailable);
    },
  };
}
