import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { cachePath } from "./cache.js";
import { BASE_IMAGE, buildImage, type Ended, podman, podmanOutput } from "./container.js";
import { packagePath } from "./packages.js";

export const DEPLOY = join(import.meta.dirname, "../../deploy");
const PACKAGES = "systemd systemd-sysv dbus cloud-init curl iproute2 python3 docker-compose";
const DOCKERFILE = `FROM localhost/${BASE_IMAGE}
RUN apt-get update --quiet=2 \\
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends ${PACKAGES} >/dev/null
`;
/** A container has no disk that is its own to enlarge, and this one no locales to choose from. */
const CLOUD_CONFIG = 'growpart: {mode: "off"}\nresize_rootfs: false\nlocale: false\n';

/** A container that boots as a virtual machine does: systemd, and cloud-init with deploy/'s user data. */
export class Machine implements AsyncDisposable {
  readonly #id: string;
  readonly #seed: TemporaryDirectory;
  /** Of picod's port. */
  readonly url: string;

  private constructor(id: string, seed: TemporaryDirectory, address: string) {
    this.#id = id;
    this.#seed = seed;
    this.url = `http://${address}`;
  }

  /** Resolves when it has booted, whether well or not. */
  static async boot(): Promise<Machine> {
    const image = await machineImage();
    const seed = temporaryDirectory();
    const archive = join(seed.path, "picod.tar.gz");
    copyFileSync(packagePath(process.arch, ".tar.gz"), archive);
    writeFileSync(join(seed.path, "user-data"), userDataFor(archive));
    writeFileSync(join(seed.path, "meta-data"), "instance-id: picod-e2e\n");
    writeFileSync(join(seed.path, "container.cfg"), CLOUD_CONFIG);
    copyFileSync(join(import.meta.dirname, "instance-metadata.mjs"), join(seed.path, "instance-metadata.mjs"));
    // systemd makes mount namespaces for its services. Not privileged: cloud-init would see the disks of the machine below.
    const rights = ["--cap-add", "SYS_ADMIN,NET_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "unmask=all"];
    const mounts = [
      `${seed.path}:/srv:ro`,
      `${DEPLOY}:/deploy:ro`,
      `${seed.path}/user-data:/var/lib/cloud/seed/nocloud/user-data:ro`,
      `${seed.path}/meta-data:/var/lib/cloud/seed/nocloud/meta-data:ro`,
      `${seed.path}/container.cfg:/etc/cloud/cloud.cfg.d/99-container.cfg:ro`,
    ].flatMap((mount) => ["--volume", mount]);
    const published = ["--publish", "127.0.0.1::49983"];
    const id = await podmanOutput("run", "--detach", "--systemd=always", ...published, ...rights, ...mounts, image, "/sbin/init");
    const machine = new Machine(id, seed, await podmanOutput("port", id, "49983/tcp"));
    await machine.exec("systemctl", "is-system-running", "--wait");
    return machine;
  }

  exec(...args: string[]): Promise<Ended> {
    return podman("exec", this.#id, ...args);
  }

  /** Runs a shell script to its good end. Returns its output. */
  async script(text: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.exec("sh", "-euc", text);
    if (exitCode !== 0) throw new Error(`${text}: exit code ${exitCode}\n${stdout}${stderr}`);
    return stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await podmanOutput("rm", "--force", "--time", "0", this.#id);
    this.#seed[Symbol.dispose]();
  }
}

/** The example with the archive that was made just now in place of the one to fill in. */
function userDataFor(archive: string): string {
  const checksum = createHash("sha256").update(readFileSync(archive)).digest("hex");
  const example = readFileSync(join(DEPLOY, "cloud-init/user-data.yaml"), "utf8");
  return example
    .replace("https://example.com/picod-linux-x64.tar.gz", "file:///srv/picod.tar.gz")
    .replace("0".repeat(64), checksum);
}

/** Installing its packages takes a minute: kept for the next run. */
async function machineImage(): Promise<string> {
  const archive = `${cachePath("machine", DOCKERFILE)}.tar`;
  if (!existsSync(archive)) {
    await podmanOutput("tag", await buildImage(DOCKERFILE), "picod-e2e-machine");
    await podmanOutput("save", "--quiet", "--output", `${archive}.${process.pid}`, "picod-e2e-machine");
    renameSync(`${archive}.${process.pid}`, archive);
  } else {
    await podmanOutput("load", "--quiet", "--input", archive);
  }
  return "localhost/picod-e2e-machine";
}
