import { pathBytes } from "../../os/path-bytes.js";

/** The order of ListDirectory and Find: by the bytes of the names, each directory before what is in it. */
export function inTreeOrder(a: string, b: string): number {
  const [these, those] = [a.split("/"), b.split("/")];
  for (const [index, name] of these.entries()) {
    const other = those[index];
    if (other === undefined) return 1;
    const order = Buffer.compare(pathBytes(name), pathBytes(other));
    if (order !== 0) return order;
  }
  return these.length - those.length;
}
