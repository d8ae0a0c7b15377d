import type { ConnectRouter } from "@connectrpc/connect";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import { ProcessService } from "../gen/picod/v1/process_pb.js";
import type { Readiness } from "../readiness.js";
import type { Sandbox } from "../sandbox.js";
import { createHealthService } from "./health.js";
import { createFilesystemService } from "./picod/filesystem-service.js";
import { createProcessService } from "./picod/process-service.js";
import { createReflectionService } from "./reflection.js";

/** RPCs that last as long as what they follow. They are told when the daemon begins to stop, and are not waited for. */
export const FOLLOWING_RPCS: ReadonlySet<string> = new Set(
  (["start", "attach", "watchProcesses", "streamInput"] as const).map(
    (name) => `/${ProcessService.typeName}/${ProcessService.method[name].name}`,
  ),
);

/** Of a call that needs no token: names of services and symbols are short. */
const PUBLIC_OPTIONS = { readMaxBytes: 64 * 1024 };

/** Every RPC service of the daemon. */
export function registerServices(router: ConnectRouter, sandbox: Sandbox, readiness: Readiness): void {
  router.service(FilesystemService, createFilesystemService(sandbox));
  router.service(ProcessService, createProcessService(sandbox, readiness));
  router.service(Health, createHealthService(readiness, [FilesystemService.typeName, ProcessService.typeName]), PUBLIC_OPTIONS);
  const reflection = createReflectionService();
  router.service(ServerReflection, reflection, PUBLIC_OPTIONS);
  router.service(ServerReflectionAlpha, reflection as object, PUBLIC_OPTIONS);
}
