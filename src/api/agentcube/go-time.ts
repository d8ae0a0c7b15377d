const NS_PER_SECOND = 1_000_000_000n;

/** "2026-01-02T03:04:05.123456789Z", as Go writes a time into JSON. @param ns since 1970. */
export function goTime(ns: bigint): string {
  const fraction = ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  const seconds = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, -".000Z".length);
  const digits = fraction.toString().padStart(9, "0").replace(/0+$/, "");
  return `${seconds}${digits === "" ? "" : `.${digits}`}Z`;
}

/** Now, in nanoseconds since 1970. */
export function nowNs(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
}
