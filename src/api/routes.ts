import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import { Filesystem as EnvdFilesystem } from "../gen/envd/filesystem/filesystem_pb.js";
import { Process as EnvdProcess } from "../gen/envd/process/process_pb.js";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import { ProcessService } from "../gen/picod/v1/process_pb.js";
import { ProcessService as SandboxdProcessService } from "../gen/sandboxd/process/v1/process_pb.js";
import type { Readiness } from "../readiness.js";
import type { Sandbox } from "../sandbox.js";
import { createEnvdFilesystemService } from "./envd/filesystem-service.js";
import { createEnvdProcessService } from "./envd/process-service.js";
import type { EnvdState } from "./envd/state.js";
import { createHealthService } from "./health.js";
import { createFilesystemService } from "./picod/filesystem-service.js";
import { createProcessService } from "./picod/process-service.js";
import { createReflectionService } from "./reflection.js";
import { createSandboxdService } from "./sandboxd/process-service.js";

/** RPCs that last as long as what they follow. They are told when the daemon begins to stop, and are not waited for. */
export const FOLLOWING_RPCS: ReadonlySet<string> = new Set([
  ...(["start", "attach", "watchProcesses", "streamInput"] as const).map(
    (name) => `/${ProcessService.typeName}/${ProcessService.method[name].name}`,
  ),
  ...(["watchDirectory", "getChanges"] as const).map(
    (name) => `/${FilesystemService.typeName}/${FilesystemService.method[name].name}`,
  ),
  `/${EnvdFilesystem.typeName}/${EnvdFilesystem.method.watchDir.name}`,
  ...(["start", "connect", "streamInput"] as const).map((name) => `/${EnvdProcess.typeName}/${EnvdProcess.method[name].name}`),
]);

/** Of a call that needs no token: names of services and symbols are short. */
const PUBLIC_OPTIONS = { readMaxBytes: 64 * 1024 };

/** Takes one service. @param options what is different from all others. */
export type RegisterService = <T extends DescService>(
  service: T,
  implementation: Partial<ServiceImpl<T>>,
  options?: Pick<ConnectRouterOptions, "readMaxBytes" | "jsonOptions">,
) => void;

/** Every RPC service of the daemon. @param envd undefined: E2B's are left out. */
export function registerServices(
  register: RegisterService,
  sandbox: Sandbox,
  readiness: Readiness,
  envd: EnvdState | undefined,
): void {
  const served = new Set<DescService>([ServerReflection, ServerReflectionAlpha]);
  const serve: RegisterService = (service, implementation, options) => {
    served.add(service);
    register(service, implementation, options);
  };
  serve(FilesystemService, createFilesystemService(sandbox, readiness));
  serve(ProcessService, createProcessService(sandbox, readiness));
  serve(SandboxdProcessService, createSandboxdService(sandbox));
  if (envd !== undefined) serve(EnvdFilesystem, createEnvdFilesystemService(sandbox, envd, readiness));
  if (envd !== undefined) serve(EnvdProcess, createEnvdProcessService(sandbox, envd));
  serve(Health, createHealthService(readiness, [FilesystemService.typeName, ProcessService.typeName]), PUBLIC_OPTIONS);
  const reflection = createReflectionService(served);
  serve(ServerReflection, reflection, PUBLIC_OPTIONS);
  serve(ServerReflectionAlpha, reflection as object, PUBLIC_OPTIONS);
}
