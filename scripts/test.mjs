// Runs every test, TypeScript and Python, and ends with one line that counts them all.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const reports = mkdtempSync(join(tmpdir(), "picod-reports-"));

try {
  run("sh", [join(root, "scripts/require-tools.sh")]);
  const typescript = await testTypescript();
  const python = testPython();
  const passed = typescript.passed + python.passed;
  const failed = typescript.failed + python.failed;
  process.exitCode = failed === 0 && typescript.passed > 0 && python.passed > 0 ? 0 : 1;
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
} finally {
  rmSync(reports, { recursive: true, force: true });
}

async function testTypescript() {
  const report = join(reports, "vitest.json");
  const { status } = spawnSync("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`], {
    cwd: root,
    stdio: "inherit",
  });
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, "utf8"));
  // An error outside of a test, in a hook or an unhandled rejection, fails the run without failing a test.
  return { passed: numPassedTests, failed: numFailedTests + (status !== 0 && numFailedTests === 0 ? 1 : 0) };
}

function testPython() {
  const venv = run("sh", [join(root, "scripts/python-venv.sh")]).trim();
  const report = join(reports, "pytest.xml");
  const { status } = spawnSync(join(venv, "bin/python"), ["-m", "pytest", `--junitxml=${report}`, join(root, "sdk/python")], {
    cwd: join(root, "sdk/python"),
    stdio: "inherit",
  });
  const count = (name) => Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(readFileSync(report, "utf8"))?.[1]);
  const failed = count("failures") + count("errors") + count("skipped");
  return { passed: count("tests") - failed, failed: failed + (status !== 0 && failed === 0 ? 1 : 0) };
}

/** Returns what it printed; its complaints are shown. */
function run(command, args) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed with ${status}\n${stdout}`);
  return stdout;
}
