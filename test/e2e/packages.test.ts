import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { runPicod } from "../helpers/run-picod.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { read, write } from "./files.js";
import { artefact, insteadOfDist, npmPackagePath, packageFolder, packagePath, pythonPackagePaths } from "./packages.js";

const root = join(import.meta.dirname, "../..");
const TYPESCRIPT = `import { createClient } from "picod/client";
const client = createClient({ url: process.env.URL ?? "", token: process.env.TOKEN });
const { stdout, exitCode } = await client.run("echo from TypeScript");
process.stdout.write(\`\${exitCode.toFixed()} \${stdout}\`);
client.close();
`;
const PYTHON = `import os, picod
with picod.PicoDClient("127.0.0.1", int(os.environ["PORT"]), access_token=os.environ["TOKEN"]) as client:
    print(client.execute_command("echo from Python"), end="")
`;

describe("npm run package", () => {
  it("names the SHA-256 of every artefact", () => {
    const sums = readFileSync(artefact("SHA256SUMS"), "utf8").trimEnd().split("\n");
    const names = sums.map((line) => line.slice(66));
    expect(names).toEqual(
      readdirSync(artefact("."))
        .filter((name) => name !== "SHA256SUMS")
        .sort(),
    );
    for (const line of sums) {
      expect(
        createHash("sha256")
          .update(readFileSync(artefact(line.slice(66))))
          .digest("hex"),
      ).toBe(line.slice(0, 64));
    }
  });

  it("makes the same bytes again of what an artefact says of itself, in another directory and under another umask", async () => {
    using directory = temporaryDirectory();
    const { stdout } = await runPicod(["--version", "--json"], { wrapper: insteadOfDist(packagePath(process.arch)) });
    const { commit } = JSON.parse(stdout) as { commit: string | null };
    const { metadata } = JSON.parse(readFileSync(packagePath(process.arch, ".cdx.json"), "utf8")) as {
      metadata: { timestamp: string };
    };
    const env = {
      ...process.env,
      PICOD_COMMIT: commit ?? "",
      SOURCE_DATE_EPOCH: String(Date.parse(metadata.timestamp) / 1000),
      TZ: "Asia/Tokyo",
    };
    const copy = `umask 077; mkdir -p "$2/node_modules"; cd "$1"
tar -c --exclude=./node_modules --exclude=./packages --exclude=./dist --exclude=./.git . | tar -x -C "$2"
mount --bind "$1/node_modules" "$2/node_modules" && cd / && exec "$3" "$2/packaging/main.mjs" --out "$4" --arch "$5"`;
    const args = [root, join(directory.path, "sources"), process.execPath, join(directory.path, "out"), process.arch];
    execFileSync("unshare", ["--mount", "sh", "-c", copy, "sh", ...args], { env, stdio: ["ignore", "ignore", "inherit"] });
    const built = readFileSync(join(directory.path, "out/SHA256SUMS"), "utf8").trimEnd().split("\n");
    expect(built.length).toBeGreaterThan(5);
    expect(readFileSync(artefact("SHA256SUMS"), "utf8").split("\n")).toEqual(expect.arrayContaining(built));
  }, 300_000);

  it.each(["x64", "arm64"])("holds notices and the bill of materials in folder and single file for %s", (arch) => {
    const folder = packageFolder(arch);
    const licences = readFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), "utf8");
    for (const part of ["\nnode 24.", "\nlibc6 2.", "\ngcc-12-base ", "\nkoffi 3.", "GNU C Library"]) {
      expect(licences).toContain(part);
    }
    const sbom = readFileSync(join(folder, "sbom.cdx.json"));
    expect(readFileSync(packagePath(arch)).includes(sbom)).toBe(true);
    expect(readFileSync(packagePath(arch)).includes(licences)).toBe(true);
  });
});

describe.each([
  ["folder", join(packageFolder("arm64"), "picod")],
  ["single file", packagePath("arm64")],
])("the package for arm64 as a %s, emulated", (_form, program) => {
  it("runs commands and moves files", async () => {
    const emulated = insteadOfDist("qemu-aarch64-static", program);
    const { stdout } = await runPicod(["--version", "--json"], { wrapper: emulated });
    expect(JSON.parse(stdout)).toMatchObject({ arch: "arm64", libc: { name: "glibc" } });
    await using daemon = await startDaemon({ wrapper: emulated });
    await using clients = connectTo(daemon.url);
    expect(await clients.process.execute({ command: "echo $((6*7))" })).toMatchObject({ stdout: "42\n", exitCode: 0 });
    using directory = temporaryDirectory();
    await write(clients, `${directory.path}/a/b`, "there and back");
    expect(await read(clients, `${directory.path}/a/b`)).toBe("there and back");
  });
});

describe.each([
  ["folder", join(packageFolder(process.arch), "picod")],
  ["single file", packagePath(process.arch)],
])("picod healthcheck of the package as a %s", (_form, program) => {
  it("does not show the token that it has from its container", async () => {
    await using daemon = await startDaemon();
    // Its kernel accepts connections, and nobody answers: the check goes on until it is killed.
    process.kill(daemon.pid, "SIGSTOP");
    try {
      const env = { PICOD_ACCESS_TOKEN: TOKEN };
      const check = spawn(program, ["healthcheck", "--port", String(daemon.port)], { env, stdio: "ignore" });
      const exited = once(check, "exit");
      const environ = () => readFileSync(`/proc/${check.pid}/environ`, "latin1");
      await eventually("the token is gone", () => environ() === `PICOD_ACCESS_TOKEN=${"*".repeat(TOKEN.length)}\0`);
      check.kill();
      await exited;
    } finally {
      process.kill(daemon.pid, "SIGCONT");
    }
  });
});

describe("a package that is not complete", () => {
  const environment = { env: { PICOD_ACCESS_TOKEN: TOKEN } };

  it.each(["node", "lib/loader", "lib/libc.so.6", "lib/koffi.node"])(
    "says as a folder that %s is missing, and ends with 2",
    async (file) => {
      using directory = temporaryDirectory();
      const folder = join(directory.path, "picod");
      cpSync(packageFolder(process.arch), folder, { recursive: true });
      rmSync(join(folder, file));
      const { ended, stderr } = await runPicod([], { ...environment, wrapper: insteadOfDist(join(folder, "picod")) });
      expect(stderr).toBe(`picod: cannot start: ${join(folder, file)}: no such file: the package is not complete\n`);
      expect(ended).toBe(2);
    },
  );

  it("says so as a single file that was cut, and ends with 2", async () => {
    using directory = temporaryDirectory();
    const file = join(directory.path, "picod");
    const whole = readFileSync(packagePath(process.arch));
    writeFileSync(file, whole.subarray(0, whole.length / 2), { mode: 0o755 });
    const { ended, stderr } = await runPicod([], { ...environment, wrapper: insteadOfDist(file) });
    expect(stderr).toBe(`picod: cannot start: ${file}: damaged: it is not complete\n`);
    expect(ended).toBe(2);
  });
});

describe("the npm package", () => {
  it("brings daemon, client and its types into an empty project", async () => {
    using project = temporaryDirectory();
    writeFileSync(join(project.path, "package.json"), '{"private": true, "type": "module"}');
    const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const packages = [npmPackagePath(), `@types/node@${devDependencies["@types/node"]}`];
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--silent", ...packages], { cwd: project.path });
    writeFileSync(join(project.path, "main.ts"), TYPESCRIPT);
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2023", "--types", "node", "main.ts"];
    execFileSync("tsc", ["--ignoreConfig", ...options], { cwd: project.path, stdio: ["ignore", "inherit", "inherit"] });
    await using daemon = await startDaemon({ wrapper: insteadOfDist(join(project.path, "node_modules/.bin/picod")) });
    const env = { ...process.env, URL: daemon.url, TOKEN };
    expect(execFileSync(process.execPath, ["main.ts"], { cwd: project.path, env, encoding: "utf8" })).toBe("0 from TypeScript\n");
  });
});

describe("the Python package", () => {
  it.each(["wheel", "sourceDistribution"] as const)("works from its %s in an empty environment", async (kind) => {
    using directory = temporaryDirectory();
    const venv = join(directory.path, "venv");
    execFileSync("python3", ["-m", "venv", venv]);
    const quiet = ["install", "--quiet", "--disable-pip-version-check"];
    execFileSync(join(venv, "bin/pip"), [...quiet, pythonPackagePaths()[kind]], { stdio: ["ignore", "inherit", "inherit"] });
    mkdirSync(join(directory.path, "elsewhere"));
    await using daemon = await startDaemon();
    const env = { PATH: process.env.PATH, PORT: String(daemon.port), TOKEN };
    const output = execFileSync(join(venv, "bin/python"), ["-c", PYTHON], {
      cwd: join(directory.path, "elsewhere"),
      env,
      encoding: "utf8",
    });
    expect(output).toBe("from Python\n");
  });
});
