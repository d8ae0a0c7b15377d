import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..");
/** An install may have to download everything. */
const STEP_LIMIT_MS = 300_000;

/** Builds another commit in a worktree of its own, which `onDispose` gets the removal of. Aborting ends a build. */
export async function buildCommit(commit, directory, onDispose, abortSignal) {
  const tree = join(directory, "worktree");
  const { stdout } = await run("git", ["-C", ROOT, "rev-parse", "--verify", "--short", `${commit}^{commit}`]);
  const name = stdout.trim();
  await run("git", ["-C", ROOT, "worktree", "add", "--detach", tree, name]);
  onDispose(() => run("git", ["-C", ROOT, "worktree", "remove", "--force", tree]));
  const options = { cwd: tree, timeout: STEP_LIMIT_MS, signal: abortSignal, maxBuffer: 64 * 1024 * 1024 };
  // Not ci: that refuses every commit whose lock file lists the optional packages of fewer platforms than npm knows.
  await run("npm", ["install", "--no-save"], options);
  await run("npm", ["run", "build"], options);
  return { name, launcher: join(tree, "dist/picod") };
}
