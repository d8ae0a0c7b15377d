import type { DescService } from "@bufbuild/protobuf";
import { type ConnectRouterOptions, createConnectRouter } from "@connectrpc/connect";
import type { Compression, UniversalHandler } from "@connectrpc/connect/protocol";
import type { ServiceOffer } from "../api/routes.js";
import { type MethodRequirements, type Requirement, requirementsByPath } from "../auth/scopes.js";
import { inputInterceptor } from "../interceptors/input.js";
import { type GrpcMethod, grpcMethodsOf } from "./grpc/methods.js";

/** Larger than any message: responses are not compressed, since callers are next door and processors are few. */
const NEVER_COMPRESS_BYTES = 2 ** 31;

/** Loaded for the first who compresses. */
const gzip: Compression = {
  name: "gzip",
  compress: async (bytes) => (await import("@connectrpc/connect-node")).compressionGzip.compress(bytes),
  decompress: async (bytes, readMaxBytes) =>
    (await import("@connectrpc/connect-node")).compressionGzip.decompress(bytes, readMaxBytes),
};

export type RpcOptions = Required<Pick<ConnectRouterOptions, "interceptors" | "readMaxBytes" | "shutdownSignal">>;

/** What is looked up by the path of an RPC. */
export type RpcLookup<T> = Pick<ReadonlyMap<string, T>, "get">;

/** The RPCs. A service is made when one of its methods is looked up for the first time. */
export class RpcServices {
  readonly handlers: RpcLookup<UniversalHandler> = { get: (path) => this.#find(this.#handlers, path) };
  /** The same, for the lane of gRPC over HTTP/2. */
  readonly grpcMethods: RpcLookup<GrpcMethod> = { get: (path) => this.#find(this.#grpcMethods, path) };
  /** What each RPC asks of its caller, of services that are not made yet as well. */
  readonly requirements: Map<string, Requirement>;
  /** Each makes one of the usual services, unless it is made. */
  readonly makeUsual: (() => void)[] = [];
  readonly #handlers = new Map<string, UniversalHandler>();
  readonly #grpcMethods = new Map<string, GrpcMethod>();
  readonly #options: RpcOptions;
  /** Makes the service that a path belongs to. */
  readonly #makers = new Map<string, () => void>();

  /** @param requirements takes what is asked. */
  constructor(requirements: Map<string, Requirement>, options: RpcOptions) {
    this.requirements = requirements;
    this.#options = options;
  }

  register<T extends DescService>(name: string, required: MethodRequirements<T>, offer: ServiceOffer<T>): void {
    const requirements = requirementsByPath(name, required);
    const make = () => {
      this.#make(offer);
      for (const [path] of requirements) this.#makers.delete(path);
    };
    if (offer.isUsual) this.makeUsual.push(() => this.#makers.get(requirements[0]?.[0] ?? "")?.());
    for (const [path, requirement] of requirements) {
      this.requirements.set(path, requirement);
      this.#makers.set(path, make);
    }
  }

  #find<T>(made: ReadonlyMap<string, T>, path: string): T | undefined {
    this.#makers.get(path)?.();
    return made.get(path);
  }

  #make<T extends DescService>({ describe, implement, options }: ServiceOffer<T>): void {
    const service = describe();
    const implementation = implement();
    const { interceptors, readMaxBytes } = this.#options;
    const common = { ...this.#options, acceptCompression: [gzip], compressMinBytes: NEVER_COMPRESS_BYTES };
    const router = createConnectRouter(common).service(service, implementation, options);
    for (const handler of router.handlers) this.#handlers.set(handler.requestPath, handler);
    // The lane's messages end with their call by themselves.
    const ownInterceptors = interceptors.filter((interceptor) => interceptor !== inputInterceptor);
    const methods = grpcMethodsOf(service, implementation, ownInterceptors, options?.readMaxBytes ?? readMaxBytes);
    for (const [path, method] of methods) this.#grpcMethods.set(path, method);
  }
}
