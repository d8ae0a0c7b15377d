import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { runPythonTool } from "./python-tools.js";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

describe("the linters", () => {
  it.each(["Dockerfile", "deploy/agentcube/Dockerfile"])("find nothing in the %s", async (path) => {
    expect(await runPythonTool("hadolint", join(root, path))).toBe("");
  });

  it("find nothing in the script that builds the image", async () => {
    expect(await runPythonTool("shellcheck", join(root, "scripts/build-image.sh"))).toBe("");
  });
});

describe("scripts/build-image.sh", () => {
  const script = join(root, "scripts/build-image.sh");

  it("names everything that is missing", async () => {
    const failed = await run("setpriv", ["--reuid", "65534", "--clear-groups", script, "--folder", "/nowhere"]).catch(
      (error) => error,
    );
    expect(failed).toMatchObject({ code: 1 });
    expect(failed.stderr).toContain("- root: debootstrap makes device nodes and files of other users");
    expect(failed.stderr).toContain("- a package in /nowhere: npm ci && npm run package -- --folder /nowhere");
  });

  it("refuses an option that it does not know", async () => {
    const failed = await run(script, ["--bogus"]).catch((error) => error);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("unknown option: --bogus") });
  });
});
