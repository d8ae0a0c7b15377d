/** Undefined for no values. */
export function median(all) {
  const values = all.filter(isKnown);
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Undefined for no values. */
export function mean(all) {
  const values = all.filter(isKnown);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Not everything can be measured in every round. */
const isKnown = (value) => value !== undefined && !Number.isNaN(value);
