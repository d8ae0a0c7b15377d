import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { copy } from "../../src/filesystem/copy.js";
import { move } from "../../src/filesystem/move.js";
import { errnoName } from "../../src/os/system-error.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const ROUND_MS = Number(process.env.PICOD_RACE_SECONDS ?? 2) * 1000;
/** Puts links that lead outside in the place of directories and back, as fast as it can. */
const RENAMER = `
import os
while True:
  for name in ("source/sub", "target/sub"):
    try:
      os.rename(name, name + ".away"); os.rename(name + ".link", name)
      os.rename(name, name + ".link"); os.rename(name + ".away", name)
    except OSError: pass
`;

it("nobody who renames meanwhile leads a copy or a move out of the root", async () => {
  using directory = temporaryDirectory();
  const root = `${directory.path}/root`;
  mkdirSync(`${directory.path}/outside`);
  writeFileSync(`${directory.path}/outside/secret`, "secret");
  for (const name of ["source", "target"]) {
    mkdirSync(`${root}/${name}/sub/deep`, { recursive: true });
    symlinkSync(`${directory.path}/outside`, `${root}/${name}/sub.link`);
  }
  for (let index = 0; index < 20; index++) writeFileSync(`${root}/source/sub/deep/${index}`, "x");
  const access = accessAs("root", root);
  const { signal } = new AbortController();
  const renamer = spawn("python3", ["-c", RENAMER], { cwd: root, stdio: "ignore" });
  await once(renamer, "spawn");
  const outcomes = new Map<string, number>();
  const attempt = async (call: () => Promise<unknown>) => {
    const outcome = await call().then(
      () => "done",
      (error) => errnoName(error) ?? expect.fail(String(error)),
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  };
  const until = performance.now() + ROUND_MS;
  for (let _round = 0; performance.now() < until; _round++) {
    await attempt(() => copy(access, "/source", `/copy`, {}, signal));
    await attempt(() => copy(access, "/source", "/target", {}, signal));
    await attempt(() => copy(access, "/source/sub/secret", "/stolen", {}, signal));
    await attempt(() => move(access, "/source/sub/deep/1", "/target/sub/moved", "replace", signal));
    await attempt(() => move(access, "/target/sub/moved", "/source/sub/deep/1", "replace", signal));
    rmSync(`${root}/copy`, { recursive: true, force: true });
  }
  renamer.kill("SIGKILL");
  await once(renamer, "exit");
  expect(readdirSync(`${directory.path}/outside`)).toEqual(["secret"]);
  const inside = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => !name.includes(".link/"));
  expect(inside.filter((name) => /stolen|\.picod-/.test(name) || (name.endsWith("secret") && !name.includes("sub/")))).toEqual(
    [],
  );
  expect(outcomes.get("done")).toBeGreaterThan(0);
});
