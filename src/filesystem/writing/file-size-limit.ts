import type { PathGuard } from "../../os/path-guard.js";

/** @param bytes that a file is about to have. @throws POLICY_LIMIT_REACHED when those are more than whoever writes it may. */
export function assertFileSize(guard: PathGuard | undefined, path: string, bytes: number): void {
  const limit = guard?.rules.maxFileSizeBytes;
  if (limit !== undefined && bytes > limit) throw guard?.rules.tooLarge(path);
}
