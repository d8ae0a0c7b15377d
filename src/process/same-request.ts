/** Names of the API for what is called otherwise here. */
const FIELD_NAMES: Readonly<Record<string, string>> = {
  timeoutMs: "timeout",
  maxOutputBytes: "max_output_bytes",
  size: "pty",
  owner: "capability",
  version: "capability",
};

/** How the API calls a value of a request, for errors. */
export function fieldName(name: string): string {
  return FIELD_NAMES[name] ?? name;
}

/** A text that is the same for values that say the same: the order of a map's entries says nothing, and clients vary it. */
export function sameText(value: unknown): string {
  const plain = (_key: string, inner: unknown) => {
    if (typeof inner === "bigint") return String(inner);
    if (inner instanceof Uint8Array) return Buffer.from(inner).toString("base64");
    const isMap = typeof inner === "object" && inner !== null && !Array.isArray(inner);
    return isMap ? Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)) : inner;
  };
  return JSON.stringify(value, plain) ?? "";
}
