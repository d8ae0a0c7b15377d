/** The decades from which on the steps between them need no marks of their own. */
const DECADES_WITH_STEPS = 2;
/** Of the axis, between a mark and that of an end. */
const ROOM_FOR_MARK = 0.1;

/** A logarithmic axis over exactly these values, from `start` to `end` on the page, with a mark at each end. */
export function exactLogScale(values, [start, end]) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const { marks, at } = logScaleOf(low, high, [start, end]);
  const room = (end - start) * ROOM_FOR_MARK;
  const between = marks.filter((mark) => at(mark) - start > room && end - at(mark) > room);
  return { marks: [low, ...between, high], at };
}

/** One that ends with marks above and below the values, at least a decade from each other: less makes hills of noise. */
export function logScale(values, range) {
  let low = stepBelow(Math.min(...values));
  let high = stepAbove(Math.max(...values));
  for (let turn = 0; high / low < 10; turn++) {
    if (turn % 2 === 0) high = stepAbove(high * 1.01);
    else low = stepBelow(low * 0.99);
  }
  return logScaleOf(low, high, range);
}

function logScaleOf(low, high, [start, end]) {
  const span = Math.log10(high / low) || 1;
  const marks = steps(low, high).filter(
    (step) => span <= DECADES_WITH_STEPS || Number.isInteger(Math.round(Math.log10(step) * 1e6) / 1e6),
  );
  return { marks, at: (value) => start + ((end - start) * Math.log10(value / low)) / span };
}

function steps(low, high) {
  const result = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const step of [1, 2, 5]) {
      const value = Number(`${step}e${power}`);
      if (value >= low * 0.999 && value <= high * 1.001) result.push(value);
    }
  }
  return result;
}

const stepBelow = (value) => steps(value / 10, value).at(-1);
const stepAbove = (value) => steps(value, value * 10)[0];

export function formatMark(value) {
  if (value >= 1e6) return `${value / 1e6} M`;
  return value >= 1000 ? value.toLocaleString("en") : String(value);
}
