/**
 * Gives a request or response another message. It belongs to its call alone; a copy would ask for all that is only made when it is asked
 * for, and an object in front of it costs as much as the rest of the chain.
 */
export function withMessage<T extends { readonly message: unknown }>(original: T, message: T["message"]): T {
  (original as { message: T["message"] }).message = message;
  return original;
}
