import { invalid } from "../fields.js";

const TRUE = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE = ["0", "f", "F", "false", "FALSE", "False"];

/** A switch; one without a value is on. @throws INVALID_ARGUMENT. */
export function isOn(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text === null || FALSE.includes(text)) return false;
  if (text === "" || TRUE.includes(text)) return true;
  throw invalid(name, `${JSON.stringify(text)} must be a boolean`);
}

/** Permission bits; undefined when there are none. @throws INVALID_ARGUMENT. */
export function toMode(query: URLSearchParams): number | undefined {
  const text = query.get("mode") ?? "";
  if (text === "") return undefined;
  if (/^0[0-7]{3}$/.test(text)) return Number.parseInt(text, 8);
  throw invalid("mode", `${JSON.stringify(text)} must match ^0[0-7]{3}$`);
}
