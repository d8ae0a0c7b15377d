/** What a header, or the name of a file, cannot have: control characters, slashes, and what stands for bytes that are no UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const UNFIT = /[\x00-\x1f\x7f/\\\uef80-\uefff]/g;

/** Names the file that a browser saves, RFC 6266: in ASCII for old ones, and as it is for the others. */
export function contentDisposition(kind: "attachment" | "inline", name: string): string {
  const fit = name.replace(UNFIT, "_");
  const ascii = fit.replace(/[^\x20-\x7e]|["%]/g, "_");
  const exact = encodeURIComponent(fit).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
  return ascii === fit ? `${kind}; filename="${fit}"` : `${kind}; filename="${ascii}"; filename*=UTF-8''${exact}`;
}
