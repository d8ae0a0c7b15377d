import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import type { MethodRequirements } from "../auth/scopes.js";
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
import { ENVD_FILESYSTEM_SCOPES, ENVD_PROCESS_SCOPES } from "./envd/scopes.js";
import type { EnvdState } from "./envd/state.js";
import { createHealthService } from "./health.js";
import { createFilesystemService } from "./picod/filesystem-service.js";
import { createProcessService } from "./picod/process-service.js";
import { FILESYSTEM_SCOPES, PROCESS_SCOPES } from "./picod/scopes.js";
import { createReflectionService } from "./reflection.js";
import { createSandboxdService } from "./sandboxd/process-service.js";
import { SANDBOXD_PROCESS_SCOPES } from "./sandboxd/scopes.js";

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

/** gRPC health must answer probes, and reflection describes a published schema; neither touches the sandbox. */
const HEALTH_SCOPES: MethodRequirements<typeof Health> = { check: "public", watch: "public" };
const REFLECTION_SCOPES: MethodRequirements<typeof ServerReflection> = { serverReflectionInfo: "public" };
const REFLECTION_ALPHA_SCOPES: MethodRequirements<typeof ServerReflectionAlpha> = { serverReflectionInfo: "public" };

/** Of a call that needs no token: names of services and symbols are short. */
const PUBLIC_OPTIONS = { readMaxBytes: 64 * 1024 };

/** Takes one service. @param requirements what its methods ask of callers. @param options what is different from all others. */
export type RegisterService = <T extends DescService>(
  service: T,
  implementation: Partial<ServiceImpl<T>>,
  requirements: MethodRequirements<T>,
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
  const serve: RegisterService = (service, implementation, requirements, options) => {
    served.add(service);
    register(service, implementation, requirements, options);
  };
  serve(FilesystemService, createFilesystemService(sandbox, readiness), FILESYSTEM_SCOPES);
  serve(ProcessService, createProcessService(sandbox, readiness), PROCESS_SCOPES);
  serve(SandboxdProcessService, createSandboxdService(sandbox), SANDBOXD_PROCESS_SCOPES);
  if (envd !== undefined) {
    serve(EnvdFilesystem, createEnvdFilesystemService(sandbox, envd, readiness), ENVD_FILESYSTEM_SCOPES);
    serve(EnvdProcess, createEnvdProcessService(sandbox, envd), ENVD_PROCESS_SCOPES);
  }
  serve(
    Health,
    createHealthService(readiness, [FilesystemService.typeName, ProcessService.typeName]),
    HEALTH_SCOPES,
    PUBLIC_OPTIONS,
  );
  const reflection = createReflectionService(served);
  serve(ServerReflection, reflection, REFLECTION_SCOPES, PUBLIC_OPTIONS);
  serve(ServerReflectionAlpha, reflection as object, REFLECTION_ALPHA_SCOPES, PUBLIC_OPTIONS);
}
