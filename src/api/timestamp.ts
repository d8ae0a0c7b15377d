const NS_PER_SECOND = 1_000_000_000n;

/** A google.protobuf.Timestamp of nanoseconds since 1970. */
export function toTimestamp(ns: bigint): { seconds: bigint; nanos: number } {
  // Rounded down, so that the nanoseconds of times before 1970 are positive too.
  const nanos = ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  return { seconds: (ns - nanos) / NS_PER_SECOND, nanos: Number(nanos) };
}
