/** The declarations of @connectrpc/connect use this name of the DOM library, which @types/node does not declare. */
type HeadersInit = ConstructorParameters<typeof Headers>[0];
