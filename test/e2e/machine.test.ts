import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { DEPLOY, Machine } from "./machine.js";

const TOKEN = "change-me";
let machine: Machine;

beforeAll(async () => {
  machine = await Machine.boot();
});

afterAll(async () => {
  await machine[Symbol.asyncDispose]();
});

function mainPid(): Promise<string> {
  return machine.script("systemctl show --property MainPID --value picod");
}

async function isReady(): Promise<boolean> {
  return await fetch(`${machine.url}/readyz`).then(
    (response) => response.ok,
    () => false,
  );
}

/** Without comments and without what leads every line of a block in YAML. */
function directives(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines
    .slice(lines.indexOf("[Unit]"), lines.indexOf("WantedBy=multi-user.target") + 1)
    .filter((line) => /^[^#]/.test(line));
}

describe("deploy/cloud-init/user-data.yaml", () => {
  it("is valid", async () => {
    const checked = await machine.script("cloud-init schema --config-file /deploy/cloud-init/user-data.yaml 2>&1");
    expect(checked).toContain("Valid cloud-config");
  });

  it("boots a machine into a running daemon", async () => {
    expect(await machine.script("cloud-init status --wait")).toContain("status: done");
    await eventually("picod listens", isReady);
    expect(await machine.script("stat --format '%A %U %G' /etc/picod/token")).toBe("-rw------- root root");
  });

  it("installs the unit of deploy/systemd", () => {
    const [unit, userData] = ["systemd/picod.service", "cloud-init/user-data.yaml"].map((name) =>
      readFileSync(join(DEPLOY, name), "utf8"),
    );
    expect(directives(userData ?? "")).toEqual(directives(unit ?? ""));
  });
});

describe("deploy/systemd/picod.service", () => {
  it("passes systemd's own check", async () => {
    expect(await machine.script("systemd-analyze verify /deploy/systemd/picod.service 2>&1")).toBe("");
  });

  it("runs commands as the agent, and as root for a call that asks for it", async () => {
    await using clients = connectTo(machine.url, { token: TOKEN });
    const agent = await clients.process.execute({ command: "id -un; pwd; touch made && ls; cat /etc/picod/token" });
    expect(agent).toMatchObject({ stdout: "agent\n/home/agent\nmade\n", stderr: expect.stringContaining("Permission denied") });
    const root = await clients.process.execute({ command: "id -un; touch /etc/made && rm /etc/made", user: "root" });
    expect(root).toMatchObject({ stdout: "root\n", exitCode: 0 });
  });

  it("starts the daemon again when it was killed", async () => {
    const before = await mainPid();
    await machine.script(`kill -KILL ${before}`);
    await eventually("another daemon runs", async () => !["0", before].includes(await mainPid()));
    await eventually("it listens", isReady);
  });

  it("ends commands with the daemon and leaves none", async () => {
    await using clients = connectTo(machine.url, { token: TOKEN });
    const pending = clients.process
      .execute({ command: "(setsid sleep 4321 &); sleep 4321" })
      .catch((error) => ConnectError.from(error).code);
    const sleeping =
      "for comm in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $comm; echo; done 2>/dev/null | grep -c '^sleep 4321' || true";
    await eventually("both sleep", async () => (await machine.script(sleeping)) === "2");
    await machine.script("systemctl stop picod");
    expect(await pending).toBe(Code.Unavailable);
    expect(await machine.script(sleeping)).toBe("0");
    expect(await machine.script("systemctl show --property Result --property ExecMainStatus picod")).toBe(
      "Result=success\nExecMainStatus=0",
    );
    await machine.script("systemctl start picod");
  });

  it("does not repeat a start that cannot succeed", async () => {
    await machine.script("mv /etc/picod/token /root/token && systemctl restart picod");
    await eventually("it has failed", async () => (await machine.exec("systemctl", "is-failed", "picod")).exitCode === 0);
    expect(await machine.script("systemctl show --property ExecMainStatus --property NRestarts picod")).toBe(
      "NRestarts=0\nExecMainStatus=2",
    );
    await machine.script("mv /root/token /etc/picod/token && systemctl restart picod");
    await eventually("it listens", isReady);
  });
});

describe("deploy/ec2/picod-metadata.conf", () => {
  it("takes the token from the instance metadata service, also when that answers late", async () => {
    await machine.script(
      "rm /etc/picod/token; install -D -m 644 -t /etc/systemd/system/picod.service.d /deploy/ec2/picod-metadata.conf",
    );
    await machine.script("ip address add 169.254.169.254/32 dev lo; systemctl daemon-reload; systemctl restart picod");
    await eventually("a first start has failed", async () =>
      /NRestarts=[1-9]/.test(await machine.script("systemctl show picod")),
    );
    // With the libraries of the package, since the machine need not have them.
    const node = "/opt/picod/lib/loader --library-path /opt/picod/lib /opt/picod/node";
    await machine.script(`systemd-run --quiet --unit metadata ${node} /srv/instance-metadata.mjs`);
    await eventually("picod listens", isReady);
    await using clients = connectTo(machine.url, { token: "from-metadata" });
    expect(await clients.process.execute({ command: "id -un" })).toMatchObject({ stdout: "agent\n" });
  });
});

describe("deploy/docker/compose.yaml", () => {
  it("is valid, and asks for a token", async () => {
    await machine.script("PICOD_ACCESS_TOKEN=x docker-compose --file /deploy/docker/compose.yaml config --quiet");
    const { exitCode, stderr } = await machine.exec("docker-compose", "--file", "/deploy/docker/compose.yaml", "config");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("make one with openssl rand -hex 32");
  });
});
