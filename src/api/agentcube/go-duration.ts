const MS_OF_UNIT: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of "1.5s", "2m", "1h30m", as Go reads a duration. @throws Error in Go's words. */
export function parseGoDuration(text: string): number {
  const [, sign, amounts = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (amounts === "0") return 0;
  const parts = [...amounts.matchAll(/(\d+\.?\d*|\.\d+)([^\d.]*)/g)];
  if (amounts === "" || parts.map(([whole]) => whole).join("") !== amounts) {
    throw new Error(`time: invalid duration ${JSON.stringify(text)}`);
  }
  const milliseconds = parts.reduce((sum, [, amount, unit = ""]) => {
    if (unit === "") throw new Error(`time: missing unit in duration ${JSON.stringify(text)}`);
    const factor = MS_OF_UNIT[unit];
    if (factor === undefined) throw new Error(`time: unknown unit ${JSON.stringify(unit)} in duration ${JSON.stringify(text)}`);
    return sum + Number(amount) * factor;
  }, 0);
  return sign === "-" ? -milliseconds : milliseconds;
}
