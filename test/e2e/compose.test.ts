import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { Container } from "./container.js";
import { readYaml } from "./yaml.js";

interface Service {
  readonly read_only: boolean;
  readonly tmpfs: string[];
  readonly volumes: string[];
  readonly cap_drop: string[];
  readonly security_opt: string[];
  readonly pids_limit: number;
  readonly mem_limit: string;
}

/** The same container for podman. */
function runOptions(service: Service): string[] {
  return [
    ...["--env", `PICOD_ACCESS_TOKEN=${TOKEN}`, "--pids-limit", String(service.pids_limit), "--memory", service.mem_limit],
    ...(service.read_only ? ["--read-only", "--read-only-tmpfs=false"] : []),
    ...service.tmpfs.flatMap((path) => ["--tmpfs", path]),
    ...service.volumes.flatMap((path) => ["--volume", path]),
    ...service.cap_drop.flatMap((name) => ["--cap-drop", name]),
    ...service.security_opt.flatMap((option) => ["--security-opt", option]),
  ];
}

describe("deploy/docker/compose.yaml", () => {
  it("leaves commands their home directory and /tmp, and nothing else to write to", async () => {
    const [file] = await readYaml<{ services: { sandbox: Service } }>(
      join(import.meta.dirname, "../../deploy/docker/compose.yaml"),
    );
    if (file === undefined) throw new Error("the file is empty");
    await using container = await Container.start({ options: runOptions(file.services.sandbox) });
    await using clients = connectTo(container.url);
    const writable = await clients.process.execute({
      command: "for d in ~ /tmp /var/tmp /opt/picod; do touch $d/x && echo $d; done",
    });
    expect(writable.stdout).toBe("/home/picod\n/tmp\n");
  });
});
