/** Everything but printable ASCII without the percent sign. */
const NEEDS_ENCODING = /[^\x20-\x24\x26-\x7e]+/g;

/** A message as the gRPC specification spells it in the field `grpc-message`: percent-encoded where that is needed, and nowhere else. */
export function encodeGrpcMessage(message: string): string {
  return message.toWellFormed().replace(NEEDS_ENCODING, encodeURIComponent);
}

/** The RPC library encodes slashes and colons too. Clients of grpc-js leave those as they come, and would show `%2Fetc%3A`. */
export function respellGrpcMessage(fields: Headers): Headers {
  const encoded = fields.get("grpc-message");
  if (encoded !== null) fields.set("grpc-message", encodeGrpcMessage(decodeURIComponent(encoded)));
  return fields;
}
