import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { BASE_IMAGE, Container, IMAGE, podmanOutput } from "./container.js";
import { runPythonTool } from "./python-tools.js";
import { readYaml } from "./yaml.js";

const folder = join(import.meta.dirname, "../../deploy/kubernetes");
const TOKEN = "change-me";

interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly capabilities: { readonly drop: string[]; readonly add?: string[] };
}

interface ContainerSpec {
  readonly image: string;
  readonly command?: string[];
  readonly args?: string[];
  readonly env?: { name: string; valueFrom: { secretKeyRef: { key: string } } }[];
  readonly securityContext: SecurityContext;
  readonly volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
}

interface PodSpec {
  readonly securityContext: Partial<SecurityContext>;
  readonly initContainers?: ContainerSpec[];
  readonly containers: [ContainerSpec];
  readonly volumes: { name: string; secret?: { defaultMode: number } }[];
}

async function readPodSpec(file: string): Promise<PodSpec> {
  const [, workload] = await readYaml<{ spec: PodSpec & { template?: { spec: PodSpec } } }>(join(folder, file));
  if (workload === undefined) throw new Error(`${file} has no second document`);
  return workload.spec.template?.spec ?? workload.spec;
}

/** What a kubelet makes of a pod's volumes: empty directories that everybody may write to, and the secret's file. */
function makeVolumes(spec: PodSpec, directory: TemporaryDirectory): void {
  for (const { name, secret } of spec.volumes) {
    const path = join(directory.path, name);
    mkdirSync(path);
    if (secret === undefined) chmodSync(path, 0o777);
    else writeFileSync(join(path, "token"), TOKEN, { mode: secret.defaultMode });
  }
}

/** The same container for podman. */
function runOptions(spec: PodSpec, container: ContainerSpec, directory: TemporaryDirectory): string[] {
  const context = { ...spec.securityContext, ...container.securityContext };
  const { drop, add = [] } = container.securityContext.capabilities;
  return [
    ...(context.runAsUser === undefined ? [] : ["--user", `${context.runAsUser}:${context.runAsGroup ?? 0}`]),
    ...(context.readOnlyRootFilesystem === true ? ["--read-only", "--read-only-tmpfs=false"] : []),
    ...(context.allowPrivilegeEscalation === false ? ["--security-opt", "no-new-privileges"] : []),
    ...drop.flatMap((name) => ["--cap-drop", name]),
    ...add.flatMap((name) => ["--cap-add", name]),
    ...(container.env ?? []).flatMap(({ name }) => ["--env", `${name}=${TOKEN}`]),
    ...(container.command === undefined ? [] : ["--entrypoint", JSON.stringify(container.command)]),
    ...container.volumeMounts.flatMap(({ name, mountPath, readOnly }) => {
      return ["--volume", `${join(directory.path, name)}:${mountPath}:${readOnly === true ? "ro" : "rw"}`];
    }),
  ];
}

async function startPod(spec: PodSpec, directory: TemporaryDirectory): Promise<Container> {
  makeVolumes(spec, directory);
  for (const init of spec.initContainers ?? []) {
    await podmanOutput("run", "--rm", "--network", "none", ...runOptions(spec, init, directory), localImage(init.image));
  }
  const [container] = spec.containers;
  const options = runOptions(spec, container, directory);
  return Container.start({ image: localImage(container.image), options, args: container.args ?? [] });
}

function localImage(image: string): string {
  return image === "picod" ? IMAGE : BASE_IMAGE;
}

describe("deploy/kubernetes/agent-sandbox.yaml", () => {
  const file = join(folder, "agent-sandbox.yaml");

  it("is a template of pods and a policy without a field that Kubernetes does not know", async () => {
    const [template, policy] = await readYaml<{ kind: string; spec: { podTemplate?: { spec: PodSpec } } }>(file);
    expect([template?.kind, policy?.kind]).toEqual(["SandboxTemplate", "NetworkPolicy"]);
    using directory = temporaryDirectory();
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "sandbox" }, spec: template?.spec.podTemplate?.spec };
    // JSON is YAML.
    writeFileSync(join(directory.path, "pod.yaml"), `${JSON.stringify(pod)}\n---\n${JSON.stringify(policy)}\n`);
    const validate = ["-m", "kubernetes_validate", "--strict", "--kubernetes-version", "1.31"];
    const output = await runPythonTool("python3", ...validate, join(directory.path, "pod.yaml"));
    expect(output.match(/ passed for resource /g)).toHaveLength(2);
  });

  it("starts what the clients of agent-sandbox look for", async () => {
    const [template] = await readYaml<{ spec: { podTemplate: { spec: PodSpec } } }>(file);
    if (template === undefined) throw new Error("no template");
    using directory = temporaryDirectory();
    await using container = await startPod(template.spec.podTemplate.spec, directory);
    // As others in the pod's network reach it.
    const curl = (port: number, path: string, ...args: string[]) => {
      const all = ["--net", "--target", `${container.pid}`, "curl", "-sSf", ...args, `http://127.0.0.1:${port}${path}`];
      return execFileSync("nsenter", all, { encoding: "utf8" });
    };
    curl(8080, "/v1/files/a%2Fb", "-X", "PUT", "-d", "kept");
    const request = ["-H", "content-type: application/json", "-d", '{"config":{"command":["sh","-c","cat a/b; id -u"]}}'];
    const answer = curl(9090, "/process.v1.ProcessService/Execute", "--http2-prior-knowledge", ...request);
    expect(JSON.parse(answer)).toEqual({ stdout: btoa("kept1000\n") });
    const [{ readinessProbe, livenessProbe }] = template.spec.podTemplate.spec.containers;
    for (const { httpGet } of [readinessProbe, livenessProbe]) {
      expect(JSON.parse(curl(httpGet.port, httpGet.path))).toMatchObject({ status: "ok" });
    }
    expect(await container.stop()).toBe(0);
  });
});

describe.each(["pod.yaml", "deployment.yaml"])("deploy/kubernetes/%s", (file) => {
  it("has no field that Kubernetes does not know", async () => {
    const output = await runPythonTool(
      "python3",
      "-m",
      "kubernetes_validate",
      "--strict",
      "--kubernetes-version",
      "1.31",
      join(folder, file),
    );
    expect(output.match(/ passed for resource /g)).toHaveLength(2);
  });

  it("has what it needs to run commands as a user that cannot read the token", async () => {
    using directory = temporaryDirectory();
    await using container = await startPod(await readPodSpec(file), directory);
    await using clients = connectTo(container.url, { token: TOKEN });
    const command = "id -u; echo kept > ~/a && cat ~/a; grep CapEff /proc/self/status; cat /proc/1/environ /etc/picod/token";
    const { stdout, stderr } = await clients.process.execute({ command });
    expect(stdout).toBe("1000\nkept\nCapEff:\t0000000000000000\n");
    expect(stderr).toContain("/proc/1/environ: Permission denied");
    expect(stderr).toMatch(/\/etc\/picod\/token: (Permission denied|No such file or directory)/);
  });

  it("answers the probes without a token and stops with exit code 0", async () => {
    using directory = temporaryDirectory();
    await using container = await startPod(await readPodSpec(file), directory);
    for (const path of ["/readyz", "/healthz"]) expect(await fetch(container.url + path)).toMatchObject({ status: 200 });
    expect(await container.stop()).toBe(0);
  });
});

describe("deploy/kubernetes/sidecar.yaml", () => {
  const file = join(folder, "sidecar.yaml");

  it("has no field that Kubernetes does not know", async () => {
    const validate = ["-m", "kubernetes_validate", "--strict", "--kubernetes-version", "1.31", file];
    expect((await runPythonTool("python3", ...validate)).match(/ passed for resource /g)).toHaveLength(2);
  });

  it("shares its files with the application, and nothing else", async () => {
    using directory = temporaryDirectory();
    const spec = await readPodSpec("sidecar.yaml");
    makeVolumes(spec, directory);
    const [sidecar] = spec.initContainers ?? [];
    if (sidecar === undefined) throw new Error("no sidecar");
    const options = runOptions(spec, sidecar, directory);
    await using container = await Container.start({ image: IMAGE, options, args: sidecar.args ?? [] });
    await using clients = connectTo(container.url, { token: TOKEN });
    const command = "echo shared > file; touch /tmp/x; touch /etc/x /opt/picod/x; cat /etc/picod/token; id -u";
    const { stdout, stderr } = await clients.process.execute({ command });
    expect(stdout).toBe("1000\n");
    expect(stderr).toMatch(/\/etc\/x.*Read-only file system[\s\S]*\/etc\/picod\/token: Permission denied/);
    const [application] = spec.containers;
    const shown = ["run", "--rm", "--network", "none", ...runOptions(spec, application, directory), "--entrypoint", "cat"];
    expect(await podmanOutput(...shown, BASE_IMAGE, "/workspace/file")).toBe("shared");
    for (const { httpGet } of [sidecar.readinessProbe, sidecar.livenessProbe]) {
      expect(await fetch(container.url + httpGet.path)).toMatchObject({ status: 200 });
    }
    expect(await container.stop()).toBe(0);
  });
});
