import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouterOptions, ServiceImpl } from "@connectrpc/connect";
import { type MethodRequirements, rpcPaths } from "../auth/scopes.js";
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
import { ENVD_FILESYSTEM, ENVD_FILESYSTEM_SCOPES, ENVD_PROCESS, ENVD_PROCESS_SCOPES } from "./envd/scopes.js";
import type { EnvdState } from "./envd/state.js";
import { createHealthService } from "./health.js";
import { createFilesystemService } from "./picod/filesystem-service.js";
import { createProcessService } from "./picod/process-service.js";
import { FILESYSTEM_SCOPES, FILESYSTEM_SERVICE, PROCESS_SCOPES, PROCESS_SERVICE } from "./picod/scopes.js";
import { createReflectionService } from "./reflection.js";
import { createSandboxdService } from "./sandboxd/process-service.js";
import { SANDBOXD_PROCESS_SCOPES, SANDBOXD_PROCESS_SERVICE } from "./sandboxd/scopes.js";

/** RPCs that last as long as what they follow. They are told when the daemon begins to stop, and are not waited for. */
export const FOLLOWING_RPCS: ReadonlySet<string> = new Set([
  ...rpcPaths<typeof ProcessService>(PROCESS_SERVICE, ["start", "attach", "watchProcesses", "streamInput"]),
  ...rpcPaths<typeof FilesystemService>(FILESYSTEM_SERVICE, ["watchDirectory", "getChanges"]),
  ...rpcPaths<typeof EnvdFilesystem>(ENVD_FILESYSTEM, ["watchDir"]),
  ...rpcPaths<typeof EnvdProcess>(ENVD_PROCESS, ["start", "connect", "streamInput"]),
]);

/** gRPC health must answer probes, and reflection describes a published schema; neither touches the sandbox. */
const HEALTH_SCOPES: MethodRequirements<typeof Health> = { check: "public", watch: "public" };
const REFLECTION_SCOPES: MethodRequirements<typeof ServerReflection> = { serverReflectionInfo: "public" };
const REFLECTION_ALPHA_SCOPES: MethodRequirements<typeof ServerReflectionAlpha> = { serverReflectionInfo: "public" };

/** Of a call that needs no token: names of services and symbols are short. */
const PUBLIC_OPTIONS = { readMaxBytes: 64 * 1024 };

/** A service, made when one of its methods is called for the first time: to describe all of them takes as long as all else at the start. */
export interface ServiceOffer<T extends DescService> {
  readonly describe: () => T;
  readonly implement: () => Partial<ServiceImpl<T>>;
  /** It is made soon after the start, so that the first who calls it need not wait for that. */
  readonly isUsual?: true;
  /** What is different from all others. */
  readonly options?: Pick<ConnectRouterOptions, "readMaxBytes" | "jsonOptions">;
}

/** Takes one service. @param name with its package. @param requirements what its methods ask of callers. */
export type RegisterService = <T extends DescService>(
  name: string,
  requirements: MethodRequirements<T>,
  offer: ServiceOffer<T>,
) => void;

/** Every RPC service of the daemon. @param envd undefined: E2B's are left out. */
export function registerServices(
  register: RegisterService,
  sandbox: Sandbox,
  readiness: Readiness,
  envd: EnvdState | undefined,
): void {
  const described: (() => DescService)[] = [];
  const serve: RegisterService = (name, requirements, offer) => {
    described.push(offer.describe);
    register(name, requirements, offer);
  };
  serve(FILESYSTEM_SERVICE, FILESYSTEM_SCOPES, {
    describe: () => FilesystemService,
    implement: () => createFilesystemService(sandbox, readiness),
    isUsual: true,
  });
  serve(PROCESS_SERVICE, PROCESS_SCOPES, {
    describe: () => ProcessService,
    implement: () => createProcessService(sandbox, readiness),
    isUsual: true,
  });
  serve(SANDBOXD_PROCESS_SERVICE, SANDBOXD_PROCESS_SCOPES, {
    describe: () => SandboxdProcessService,
    implement: () => createSandboxdService(sandbox),
  });
  if (envd !== undefined) {
    serve(ENVD_FILESYSTEM, ENVD_FILESYSTEM_SCOPES, {
      describe: () => EnvdFilesystem,
      implement: () => createEnvdFilesystemService(sandbox, envd, readiness),
    });
    serve(ENVD_PROCESS, ENVD_PROCESS_SCOPES, {
      describe: () => EnvdProcess,
      implement: () => createEnvdProcessService(sandbox, envd),
    });
  }
  serve("grpc.health.v1.Health", HEALTH_SCOPES, {
    describe: () => Health,
    implement: () => createHealthService(readiness, [FILESYSTEM_SERVICE, PROCESS_SERVICE]),
    options: PUBLIC_OPTIONS,
  });
  const reflect = () => createReflectionService(new Set(described.map((describe) => describe())));
  serve("grpc.reflection.v1.ServerReflection", REFLECTION_SCOPES, {
    describe: () => ServerReflection,
    implement: reflect,
    options: PUBLIC_OPTIONS,
  });
  serve("grpc.reflection.v1alpha.ServerReflection", REFLECTION_ALPHA_SCOPES, {
    describe: () => ServerReflectionAlpha,
    implement: () => reflect() as object,
    options: PUBLIC_OPTIONS,
  });
}
