import type { TerminalSize } from "../../os/terminal.js";
import { asObject, invalid } from "../fields.js";

/** `{rows, cols}`. @throws INVALID_ARGUMENT. */
export function toTerminalSize(value: unknown, name: string): TerminalSize {
  const { rows, cols } = asObject(value, name);
  const isValid = (size: unknown): size is number => Number.isInteger(size) && Number(size) >= 1 && Number(size) <= 65_535;
  if (isValid(rows) && isValid(cols)) return { rows, cols };
  throw invalid(name, "rows and cols are whole numbers from 1 to 65535");
}
