import type { EntryInfo, FileKind } from "../../filesystem/entry-info.js";

const LETTERS: Readonly<Record<FileKind, string>> = {
  file: "",
  directory: "d",
  symlink: "L",
  "block-device": "D",
  "character-device": "D",
  fifo: "p",
  socket: "S",
};
const PERMISSIONS = "rwxrwxrwx";

/** "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx": a mode as Go prints it, which is not quite as ls(1) does. */
export function goMode({ kind, mode }: Pick<EntryInfo, "kind" | "mode">): string {
  const special = [mode & 0o4000 ? "u" : "", mode & 0o2000 ? "g" : "", kind === "character-device" ? "c" : ""];
  const letters = LETTERS[kind] + special.join("") + (mode & 0o1000 ? "t" : "");
  const bits = [...PERMISSIONS].map((letter, index) => (mode & (0o400 >> index) ? letter : "-"));
  return (letters === "" ? "-" : letters) + bits.join("");
}
