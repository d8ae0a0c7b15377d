import { Code } from "@connectrpc/connect";

/** "not_found": the name of a code in the Connect protocol, in logs and in metrics. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
