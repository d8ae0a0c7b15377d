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
  // Again, and last: what is kept of a long log is often its end alone.
  for (const failure of [...typescript.failures, ...python.failures]) process.stdout.write(`\nFAILED ${failure}\n`);
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
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  const failures = testResults.flatMap(({ name, message, assertionResults }) => {
    const tests = assertionResults.filter((test) => test.status === "failed");
    if (message !== "" && tests.length === 0) return [`${name}: ${message}`];
    return tests.map(({ fullName, failureMessages }) => `${name}: ${fullName}: ${failureMessages.join("\n")}`);
  });
  return { passed: numPassedTests, ...outcome(status, numFailedTests, failures, "vitest") };
}

function testPython() {
  const venv = run("sh", [join(root, "scripts/python-venv.sh")]).trim();
  const report = join(reports, "pytest.xml");
  const { status } = spawnSync(join(venv, "bin/python"), ["-m", "pytest", `--junitxml=${report}`, join(root, "sdk/python")], {
    cwd: join(root, "sdk/python"),
    stdio: "inherit",
  });
  const xml = readFileSync(report, "utf8");
  const count = (name) => Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1]);
  const failed = count("failures") + count("errors") + count("skipped");
  const failing = /<testcase classname="([^"]*)" name="([^"]*)"[^>]*>\s*<(failure|error|skipped)\b/g;
  const failures = [...xml.matchAll(failing)].map(([, file, test, how]) => `${file}: ${test}: ${how}`);
  return { passed: count("tests") - failed, ...outcome(status, failed, failures, "pytest") };
}

/** An error outside of a test, in a hook or an unhandled rejection, fails the run without failing a test. */
function outcome(status, failed, failures, runner) {
  if (status === 0 || failed > 0) return { failed, failures };
  return {
    failed: 1,
    failures: [...failures, `${runner} ended with ${status}, and no test failed: an error outside of the tests`],
  };
}

/** Returns what it printed; its complaints are shown. */
function run(command, args) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed with ${status}\n${stdout}`);
  return stdout;
}
