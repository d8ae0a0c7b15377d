import { createRegistry, type DescFile, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../gen/google/rpc/error_details_pb.js";
import type { ServerReflectionRequest, ServerReflectionResponseSchema } from "../gen/grpc/reflection/v1/reflection_pb.js";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/** gRPC server reflection of these services and of what errors carry; v1 and v1alpha differ in nothing but their names. */
export function createReflectionService(services: ReadonlySet<DescService>) {
  const described = [...[...services].map(({ file }) => file), file_google_rpc_error_details];
  const everything = [...new Set(described.flatMap(withImports))];
  const symbols = createRegistry(...everything);
  const files = new Map(everything.map((file) => [`${file.name}.proto`, file]));
  const serviceNames = [...services].map(({ typeName }) => typeName);

  function answer(request: ServerReflectionRequest["messageRequest"]): Answer {
    switch (request.case) {
      case "listServices":
        return { case: "listServicesResponse", value: { service: serviceNames.map((name) => ({ name })) } };
      case "fileByFilename":
        return describe(files.get(request.value), request.value);
      case "fileContainingSymbol":
        return describe(fileOfSymbol(request.value), request.value);
      case "allExtensionNumbersOfType":
        return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber: [] } };
      default:
        return notFound(request.case === "fileContainingExtension" ? "extension" : "request");
    }
  }

  /** A method, field or enum value is found through the type that holds it. */
  function fileOfSymbol(symbol: string): DescFile | undefined {
    const holder = symbols.get(symbol);
    if (holder !== undefined) return holder.file;
    const dot = symbol.lastIndexOf(".");
    return dot < 0 ? undefined : fileOfSymbol(symbol.slice(0, dot));
  }

  return {
    async *serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: answer(request.messageRequest) };
      }
    },
  };
}

/** A file and everything it needs, needed ones last. */
function withImports(file: DescFile): DescFile[] {
  return [file, ...file.dependencies.flatMap(withImports)];
}

function describe(file: DescFile | undefined, asked: string): Answer {
  if (file === undefined) return notFound(asked);
  const all = [...new Set(withImports(file))];
  const fileDescriptorProto = all.map((each) => toBinary(FileDescriptorProtoSchema, each.proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(asked: string): Answer {
  return { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: `not found: ${asked}` } };
}
