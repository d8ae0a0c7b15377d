import { hash, timingSafeEqual } from "node:crypto";

/** Takes the same time wherever they differ. */
export function isSameSecret(a: string, b: string): boolean {
  return timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
}
