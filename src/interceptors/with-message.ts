/** A request or response with another message. Not a copy, which would ask for all that is only made when it is asked for. */
export function withMessage<T extends { readonly message: unknown }>(original: T, message: T["message"]): T {
  return Object.create(original, { message: { value: message, enumerable: true } });
}
