import { posix } from "node:path";

export const OCTET_STREAM = "application/octet-stream";

const TEXT = "txt log md csv tsv json yaml yml toml ini py ts js sh c h go rs diff";

/** What a browser may show of a file that anybody in the sandbox has made: nothing that runs scripts. */
const INLINE_TYPES: ReadonlyMap<string, string> = new Map([
  ...TEXT.split(" ").map((extension) => [extension, "text/plain; charset=utf-8"] as const),
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["avif", "image/avif"],
  ["ico", "image/x-icon"],
  ["pdf", "application/pdf"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["ogg", "audio/ogg"],
  ["mp4", "video/mp4"],
  ["webm", "video/webm"],
]);

/** By the extension of its name, for `?inline`. */
export function inlineType(name: string): string {
  return INLINE_TYPES.get(posix.extname(name).slice(1).toLowerCase()) ?? OCTET_STREAM;
}
