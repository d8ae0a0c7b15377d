import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { BASE_IMAGE, Container, IMAGE, podmanOutput } from "./container.js";
import { readYaml } from "./yaml.js";

const folder = join(import.meta.dirname, "../../deploy/agentcube");

interface CodeInterpreter {
  readonly spec: {
    readonly ports: readonly { readonly port: number }[];
    readonly template: { readonly args: readonly string[] };
  };
}

describe("deploy/agentcube", () => {
  it("makes an image that answers AgentCube's router where it looks, with its key", async () => {
    const [interpreter] = await readYaml<CodeInterpreter>(join(folder, "code-interpreter.yaml"));
    if (interpreter === undefined) throw new Error("the file is empty");
    const from = ["--build-arg", `PICOD_IMAGE=localhost/${IMAGE}`, "--build-arg", `BASE_IMAGE=localhost/${BASE_IMAGE}`];
    const image = await podmanOutput("build", "--quiet", "--isolation", "chroot", ...from, folder);
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const key = publicKey.export({ type: "spki", format: "pem" }).toString();
    const [{ port }] = interpreter.spec.ports as [{ port: number }];
    const options = ["--env", `PICOD_AUTH_PUBLIC_KEY=${key}`, "--publish", `127.0.0.1::${port}`];
    await using container = await Container.start({ image, options, args: interpreter.spec.template.args });
    const address = await podmanOutput("port", container.id, `${port}/tcp`);
    expect(await (await fetch(`http://${address}/health`)).json()).toMatchObject({ status: "ok", service: "PicoD" });
    const token = await new SignJWT().setProtectedHeader({ alg: "RS256" }).setIssuedAt().setExpirationTime("5m").sign(privateKey);
    const execute = (headers: Record<string, string>) => {
      return fetch(`http://${address}/api/execute`, { method: "POST", headers, body: JSON.stringify({ command: ["pwd"] }) });
    };
    expect(await (await execute({ authorization: `Bearer ${token}` })).json()).toMatchObject({
      stdout: "/workspace\n",
      exit_code: 0,
    });
    expect((await execute({})).status).toBe(401);
    expect(await container.stop()).toBe(0);
  });
});
