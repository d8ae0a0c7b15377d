/** Extended attributes follow this in the key of a record. */
export const XATTR_KEY = "SCHILY.xattr.";

/**
 * Keys and values of a PAX extended header, POSIX.1-2001. Values are bytes, in a string one character each (latin1), since names of files
 * and extended attributes are.
 */
export type PaxRecords = Map<string, string>;

/** `<length> <key>=<value>\n` each, where the length counts itself. */
export function encodePaxRecords(records: PaxRecords): Buffer {
  let text = "";
  for (const [key, value] of records) {
    const rest = ` ${key}=${value}\n`;
    let length = rest.length;
    while (length !== rest.length + String(length).length) length = rest.length + String(length).length;
    text += length + rest;
  }
  return Buffer.from(text, "latin1");
}

/** Passes every record of an extended header on, in order. False when it is malformed. */
export function decodePaxRecords(body: Buffer, take: (key: string, value: string) => void): boolean {
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const digits = space < 0 || space - at > 10 ? "" : body.toString("latin1", at, space);
    const end = at + Number(digits);
    const equals = body.indexOf(0x3d, space);
    if (!/^[0-9]+$/.test(digits) || end > body.length || equals < 0 || equals >= end - 1 || body[end - 1] !== 0x0a) return false;
    take(body.toString("latin1", space + 1, equals), body.toString("latin1", equals + 1, end - 1));
    at = end;
  }
  return true;
}

/** As GNU tar does, because a key ends at the first `=`. */
export function escapeXattrName(name: string): string {
  return name.replaceAll("%", "%25").replaceAll("=", "%3D");
}

export function unescapeXattrName(name: string): string {
  return name.replaceAll("%3D", "=").replaceAll("%25", "%");
}
