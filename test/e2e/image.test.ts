import { chmodSync, chownSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Outcome_Reason } from "../../src/gen/picod/v1/process_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { Container, type ContainerOptions, IMAGE, podman, podmanOutput } from "./container.js";
import { read, write } from "./files.js";

const TOKEN_IN_ENVIRONMENT = ["--env", `PICOD_ACCESS_TOKEN=${TOKEN}`];
const PICOD_UID = 1000;
/** What a daemon needs that is root and runs commands as others; deploy/kubernetes/deployment.yaml has the same. */
const CAPABILITIES = ["--cap-drop", "all", "--cap-add", "SETUID,SETGID,KILL,CHOWN"];

/** Over Connect and HTTP/1.1: what curl can do. */
function connect(container: Container): Clients {
  return connectTo(container.url, { protocol: "Connect over HTTP/1.1" });
}

interface Secret extends Disposable {
  /** Of `podman run`. */
  readonly mount: readonly string[];
}

/** A token file as orchestrators mount one: mode 0400. */
function secretOwnedBy(uid: number): Secret {
  const directory: TemporaryDirectory = temporaryDirectory();
  const path = `${directory.path}/token`;
  writeFileSync(path, `${TOKEN}\n`);
  chmodSync(path, 0o400);
  chownSync(path, uid, uid);
  return { mount: ["--volume", `${path}:/etc/picod/token:ro`], [Symbol.dispose]: () => directory[Symbol.dispose]() };
}

describe("the image", () => {
  it("runs the daemon as PID 1 and commands as an unprivileged user", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    await using clients = connect(container);
    const { stdout } = await clients.process.execute({
      command: "id; pwd; echo $HOME; tr '\\0' '\\n' < /proc/1/cmdline | head -n 1",
    });
    expect(stdout.split("\n")).toEqual([
      "uid=1000(picod) gid=1000(picod) groups=1000(picod)",
      "/home/picod",
      "/home/picod",
      "/opt/picod/picod",
      "",
    ]);
  });

  it("writes files and reads them back", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    await using clients = connect(container);
    const { entry } = await write(clients, "notes/today.txt", "from outside");
    expect(entry).toMatchObject({ path: "/home/picod/notes/today.txt", owner: "picod", group: "picod" });
    expect(await read(clients, "notes/today.txt")).toBe("from outside");
  });

  it("refuses to start without a token", async () => {
    const { exitCode, stderr } = await podman("run", "--rm", "--network", "none", IMAGE);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("picod: no access token: give one by");
  });

  it("cannot be changed by its commands", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    await using clients = connect(container);
    const { stdout } = await clients.process.execute({ command: "find /opt/picod -writable" });
    expect(stdout).toBe("");
  });

  it("answers its own health check", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    expect(await container.exec("/opt/picod/picod", "healthcheck")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await podman("healthcheck", "run", container.id)).toMatchObject({ exitCode: 0 });
    expect(await container.exec("picod", "healthcheck", "--port", "1")).toMatchObject({ exitCode: 1 });
  });

  it("works with a read-only root file system and says what cannot be written", async () => {
    const readOnly = ["--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp"];
    await using container = await Container.start({ options: [...TOKEN_IN_ENVIRONMENT, ...readOnly] });
    await using clients = connect(container);
    await write(clients, "/tmp/a/b", "kept");
    expect(await clients.process.execute({ command: "cat /tmp/a/b" })).toMatchObject({ stdout: "kept", exitCode: 0 });
    const refused = await write(clients, "/home/picod/a", "lost").catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.PermissionDenied, rawMessage: expect.stringContaining("read-only file system") });
  });

  it("leaves no zombie of a thousand orphans", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    await using clients = connect(container);
    const orphans = "for i in $(seq 1000); do (sleep 0.$((i % 10)) &); done; echo all started";
    expect(await clients.process.execute({ command: orphans, timeout: 60 })).toMatchObject({
      stdout: "all started\n",
      exitCode: 0,
    });
    await eventually("every orphan is reaped", () => container.processes().length === 0);
  });

  it("outlives a command that takes all memory", async () => {
    await using container = await Container.start({ options: [...TOKEN_IN_ENVIRONMENT, "--memory", "200m"] });
    await using clients = connect(container);
    expect(await clients.process.execute({ argv: ["tail", "/dev/zero"] })).toMatchObject({ exitCode: 137 });
    expect(await clients.process.execute({ command: "echo alive" })).toMatchObject({ stdout: "alive\n" });
  });

  it("ends a command that forks until the limit of processes is reached", async () => {
    await using container = await Container.start({ options: [...TOKEN_IN_ENVIRONMENT, "--pids-limit", "64"] });
    await using clients = connect(container);
    const { outcome } = await clients.process.execute({ command: "bomb() { bomb & bomb & sleep 600; }; bomb", timeout: 2 });
    expect(outcome).toMatchObject({ reason: Outcome_Reason.TIMED_OUT, survivingProcesses: 0 });
    expect(await clients.process.execute({ command: "echo alive" })).toMatchObject({ stdout: "alive\n" });
  });

  it("answers TERM within docker's ten seconds, after ending its commands, with exit code 0", async () => {
    using directory = temporaryDirectory();
    chownSync(directory.path, PICOD_UID, PICOD_UID);
    await using container = await Container.start({ options: [...TOKEN_IN_ENVIRONMENT, "--volume", `${directory.path}:/out`] });
    await using clients = connect(container);
    const obedient = clients.process.execute({
      command: "trap 'echo > /out/told; exit' TERM; echo > /out/obedient; sleep 600 & wait",
    });
    const stubborn = clients.process.execute({ command: "trap '' TERM; echo > /out/stubborn; while :; do sleep 1; done" });
    const outcomes = Promise.allSettled([obedient, stubborn]);
    await eventually("both run", () => ["obedient", "stubborn"].every((name) => existsSync(`${directory.path}/${name}`)));

    const startedAt = performance.now();
    expect(await container.stop()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(existsSync(`${directory.path}/told`)).toBe(true);
    expect(container.processes()).toEqual([]);
    for (const outcome of await outcomes) {
      expect(outcome.status === "rejected" ? ConnectError.from(outcome.reason).code : outcome.value).toBe(Code.Unavailable);
    }
  });
});

describe("what the image says of itself", () => {
  it("has the labels of the OCI image specification, a health check, and a user by number", async () => {
    const [image] = JSON.parse(await podmanOutput("image", "inspect", IMAGE)) as [{ Config: Record<string, unknown> }];
    const labels = Object.fromEntries(
      ["title", "description", "version", "revision", "licenses"].map((name) => [
        `org.opencontainers.image.${name}`,
        expect.stringMatching(/./),
      ]),
    );
    expect(image.Config).toMatchObject({ User: "1000:1000", Entrypoint: ["/opt/picod/picod"], Labels: labels });
    const [{ Healthcheck }] = JSON.parse(await podmanOutput("image", "inspect", IMAGE)) as [{ Healthcheck: { Test: string[] } }];
    expect(Healthcheck.Test).toEqual(["CMD", "/opt/picod/picod", "healthcheck"]);
  });
});

describe("the token", () => {
  it("is taken from a mounted secret", async () => {
    using secret = secretOwnedBy(PICOD_UID);
    await using container = await Container.start({ options: secret.mount });
    expect(container.logs[0]).toMatchObject({ tokenSource: "file /etc/picod/token" });
    await using clients = connect(container);
    expect(await clients.process.execute({ command: "echo in" })).toMatchObject({ stdout: "in\n" });
    await using stranger = connectTo(container.url, { protocol: "Connect over HTTP/1.1", token: "wrong" });
    const refused = await stranger.process
      .execute({ command: "echo in" })
      .catch((error: unknown) => ConnectError.from(error).code);
    expect(refused).toBe(Code.Unauthenticated);
  });

  it("can be rotated by swapping the mounted secret, as Kubernetes does", async () => {
    using directory = temporaryDirectory();
    const publish = (name: string, token: string) => {
      mkdirSync(`${directory.path}/${name}`);
      writeFileSync(`${directory.path}/${name}/token`, token);
      symlinkSync(name, `${directory.path}/..data.new`);
      renameSync(`${directory.path}/..data.new`, `${directory.path}/..data`);
    };
    publish("..1", TOKEN);
    symlinkSync("..data/token", `${directory.path}/token`);
    chmodSync(directory.path, 0o755);
    await using container = await Container.start({ options: ["--volume", `${directory.path}:/etc/picod:ro`] });
    await using rotated = connectTo(container.url, { protocol: "Connect over HTTP/1.1", token: "rotated-token" });
    await expect(rotated.process.execute({ command: "true" })).rejects.toMatchObject({ code: Code.Unauthenticated });
    publish("..2", "rotated-token");
    await eventually("the new token is taken", async () => {
      return await rotated.process.execute({ command: "true" }).then(
        () => true,
        () => false,
      );
    });
  });

  it("that the daemon may not read stops it from starting", async () => {
    using secret = secretOwnedBy(0);
    const { exitCode, stderr } = await podman("run", "--rm", "--network", "none", ...secret.mount, IMAGE);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("picod: cannot read the access token from file /etc/picod/token: permission denied");
  });

  it("of the environment is out of reach for commands", async () => {
    await using container = await Container.start({ options: TOKEN_IN_ENVIRONMENT });
    await using clients = connect(container);
    const { stdout, stderr } = await clients.process.execute({ command: "env; cat /proc/*/environ /proc/1/cmdline" });
    expect(stdout).not.toContain(TOKEN);
    expect(stderr).toContain("/proc/1/environ: Permission denied");
  });
});

describe("a daemon that is root and runs commands as picod", () => {
  const separateUsers = (secret: Secret): ContainerOptions => ({
    options: ["--user", "0", ...CAPABILITIES, "--security-opt", "no-new-privileges", ...secret.mount],
    args: ["--user", "picod"],
  });

  it("keeps the secret's file from commands and from file operations", async () => {
    using secret = secretOwnedBy(0);
    await using container = await Container.start(separateUsers(secret));
    await using clients = connect(container);
    const result = await clients.process.execute({ command: "id -un; grep CapEff /proc/self/status; cat /etc/picod/token" });
    expect(result).toMatchObject({ stdout: "picod\nCapEff:\t0000000000000000\n", exitCode: 1 });
    expect(result.stderr).toContain("Permission denied");
    const refused = await read(clients, "/etc/picod/token").catch((error: unknown) => ConnectError.from(error).code);
    expect(refused).toBe(Code.PermissionDenied);
  });

  it("writes files that belong to that user", async () => {
    using secret = secretOwnedBy(0);
    await using container = await Container.start(separateUsers(secret));
    await using clients = connect(container);
    expect((await write(clients, "a/b", "mine")).entry).toMatchObject({ path: "/home/picod/a/b", owner: "picod" });
    expect(await clients.process.execute({ command: "rm -r a && echo gone" })).toMatchObject({ stdout: "gone\n" });
  });

  it("ends everything that a command has left behind, also in another session", async () => {
    using secret = secretOwnedBy(0);
    await using container = await Container.start(separateUsers(secret));
    await using clients = connect(container);
    const { outcome } = await clients.process.execute({ command: "(setsid sleep 600 &); sleep 600", timeout: 1 });
    expect(outcome).toMatchObject({ survivingProcesses: 0 });
    await eventually("nothing runs any more", () => container.processes().length === 0);
  });
});
