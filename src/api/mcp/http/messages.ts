/** What of a message is looked at before the SDK has judged it. */
interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: { readonly requestId?: unknown };
}

const FIRST_WITHOUT_BATCHES = "2025-06-18";
const MAX_SHOWN_CHARACTERS = 100;

export function isInitialize(body: unknown): boolean {
  return messagesOf(body).some(({ method }) => method === "initialize");
}

/** Of those that are to be answered. */
export function requestIds(body: unknown): unknown[] {
  return messagesOf(body)
    .filter(({ id, method }) => method !== undefined && id !== undefined)
    .map(({ id }) => id);
}

/** Of requests that their client does not wait for any longer. */
export function cancelledIds(body: unknown): unknown[] {
  const cancellations = messagesOf(body).filter(({ method }) => method === "notifications/cancelled");
  return cancellations.map(({ params }) => params?.requestId);
}

/**
 * Why a body is no request; undefined when the SDK may judge it. @param version of the protocol, as the client has it in its headers.
 * @param isInUse whether a request with that id is in progress.
 */
export function whyInvalid(body: unknown, version: string, isInUse: (id: unknown) => boolean): string | undefined {
  if (Array.isArray(body) && body.length === 0) return "a batch of nothing";
  if (Array.isArray(body) && version >= FIRST_WITHOUT_BATCHES) return `version ${version} of the protocol has no batches`;
  const seen = new Set<unknown>();
  for (const id of requestIds(body)) {
    if (seen.has(id) || isInUse(id))
      return `the id ${JSON.stringify(id).slice(0, MAX_SHOWN_CHARACTERS)} is that of a request in progress`;
    seen.add(id);
  }
  return undefined;
}

function messagesOf(body: unknown): Message[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.filter((message): message is Message => typeof message === "object" && message !== null);
}
