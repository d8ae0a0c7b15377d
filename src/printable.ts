/** For messages: no control characters, not long. */
export function printable(text: string): string {
  const shown = text.length > 120 ? `${text.slice(0, 120)}…` : text;
  return JSON.stringify(shown);
}
