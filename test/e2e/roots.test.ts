import { beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { BASE_IMAGE, buildImage, Container, IMAGE, podman } from "./container.js";

const options = ["--env", `PICOD_ACCESS_TOKEN=${TOKEN}`, "--entrypoint", "/opt/picod/picod"];
let image = "";

beforeAll(async () => {
  image = await buildImage(`FROM localhost/${BASE_IMAGE}\nCOPY --from=localhost/${IMAGE} /opt/picod /opt/picod\n`);
});

describe("the folder /opt/picod, copied into another image", () => {
  it("runs in a Debian that has neither Node nor Python", async () => {
    await using container = await Container.start({ image, options });
    await using clients = connectTo(container.url);
    const result = await clients.process.execute({ command: "id -un; command -v node python3 || echo neither" });
    expect(result).toMatchObject({ stdout: "root\nneither\n", exitCode: 0 });
  });

  it("runs as a user that the image does not know", async () => {
    await using container = await Container.start({ image, options: [...options, "--user", "4242:4242", "--passwd=false"] });
    await using clients = connectTo(container.url);
    const result = await clients.process.execute({ command: "id; echo $HOME; pwd; echo $USER" });
    expect(result).toMatchObject({ stdout: "uid=4242 gid=4242 groups=4242\n/\n/\n4242\n", exitCode: 0 });
  });

  it("runs without a /tmp", async () => {
    await using container = await Container.start({ image: await buildImage(`FROM ${image}\nRUN rmdir /tmp\n`), options });
    await using clients = connectTo(container.url);
    expect(await clients.process.execute({ command: "ls -d /tmp" })).toMatchObject({ exitCode: 2 });
  });

  it("names the library that an image lacks", async () => {
    const bare = await buildImage(`FROM ${image}\nRUN rm /usr/lib/*/libstdc++.so.6*\n`);
    const { exitCode, stderr } = await podman("run", "--rm", "--network", "none", ...options, bare, "--version");
    expect(exitCode).toBe(127);
    expect(stderr).toContain("libstdc++.so.6: cannot open shared object file");
  });
});
