import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { cached } from "./cached.js";

const alerts = join(import.meta.dirname, "../../deploy/prometheus/alerts.yaml");
let promtool = "";

beforeAll(() => {
  // Taken out of Debian's package: installing it would start a server.
  const folder = cached("prometheus", "debian", (path) => {
    mkdirSync(path);
    const apt = { cwd: path, stdio: "inherit" } as const;
    execFileSync("apt-get", ["update", "--quiet=2"], apt);
    execFileSync("apt-get", ["download", "--quiet=2", "-o", "APT::Sandbox::User=root", "prometheus"], apt);
    const [archive = ""] = readdirSync(path);
    execFileSync("dpkg-deb", ["--extract", archive, path], apt);
  });
  promtool = join(folder, "usr/bin/promtool");
});

describe("promtool", () => {
  it("finds nothing wrong with the alerts", () => {
    const rules = readFileSync(alerts, "utf8").match(/- alert:/g)?.length;
    expect(execFileSync(promtool, ["check", "rules", "--lint-fatal", alerts], { encoding: "utf8" })).toContain(
      `SUCCESS: ${rules} rules found`,
    );
  });

  it("finds nothing wrong with the metrics, but for names that the library gives", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await clients.process.execute({ command: "true" });
    const text = await (await fetch(`${daemon.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();
    const found = complaints(text);
    expect(found.filter((line) => !/^nodejs_active_(handles|requests|resources)_total /.test(line))).toEqual([]);
  });
});

/** It exits with another code when it has something to say. */
function complaints(metrics: string): string[] {
  const { stdout, stderr } = spawnSync(promtool, ["check", "metrics"], { input: metrics, encoding: "utf8" });
  return `${stdout}${stderr}`.split("\n").filter((line) => line !== "");
}
