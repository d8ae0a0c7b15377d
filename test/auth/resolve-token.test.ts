import { symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { resolveToken, type TokenSources } from "../../src/auth/resolve-token.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { startMetadataServer } from "./metadata-server.js";

type SourceName = keyof TokenSources;
const ORDER: readonly SourceName[] = ["flag", "environment", "file", "defaultFile", "metadataService"];

/** Every non-empty set of sources, as it is present on one machine. */
const COMBINATIONS = Array.from({ length: 2 ** ORDER.length - 1 }, (_, index) =>
  ORDER.filter((_name, bit) => ((index + 1) >> bit) & 1),
);

describe("resolveToken", () => {
  it.each(COMBINATIONS.map((present) => [present.join(", "), present[0] ?? "", present] as const))(
    "given %s takes %s",
    async (_title, winner, present) => {
      using directory = temporaryDirectory();
      await using server = await startMetadataServer((_request, response) => response.end("from-metadataService"));
      const has = (name: SourceName) => present.includes(name);
      const [file, defaultFile] = [`${directory.path}/file`, `${directory.path}/default`];
      writeFileSync(file, "from-file", { mode: 0o600 });
      if (has("defaultFile")) writeFileSync(defaultFile, "from-defaultFile", { mode: 0o600 });
      const limits = { flavor: "plain" as const, attemptTimeoutMs: 1000, attempts: 1, retryDelayMs: 0 };
      const token = await resolveToken(
        {
          flag: has("flag") ? "from-flag" : undefined,
          environment: has("environment") ? "from-environment" : undefined,
          file: has("file") ? file : undefined,
          defaultFile,
          metadataService: has("metadataService") ? { url: server.url, ...limits } : undefined,
        },
        expect.unreachable,
      );
      const sources = {
        flag: "--access-token",
        environment: "PICOD_ACCESS_TOKEN",
        file: `file ${file}`,
        defaultFile: `file ${defaultFile}`,
        metadataService: `metadata service ${server.url}`,
      };
      expect(token).toMatchObject({ value: `from-${winner}`, source: sources[winner as SourceName] });
      expect(server.requests).toHaveLength(winner === "metadataService" ? 1 : 0);
    },
  );

  const NONE: TokenSources = {
    flag: undefined,
    environment: undefined,
    file: undefined,
    defaultFile: "/nonexistent/token",
    metadataService: undefined,
  };

  it("finds nothing where nothing is configured", async () => {
    expect(await resolveToken(NONE, expect.unreachable)).toBeUndefined();
  });

  it.each<[string, Partial<TokenSources>, string]>([
    ["flag", { flag: "" }, "the access token from --access-token is empty"],
    ["flag of white space", { flag: " " }, "the access token from --access-token is empty"],
    ["variable", { environment: "" }, "the access token from PICOD_ACCESS_TOKEN is empty"],
    [
      "file",
      { file: "/nonexistent/token" },
      "cannot read the access token from file /nonexistent/token: no such file or directory",
    ],
  ])("does not fall through from a broken %s to the next source", async (_case, broken, message) => {
    using directory = temporaryDirectory();
    const defaultFile = `${directory.path}/token`;
    writeFileSync(defaultFile, "another-token");
    await expect(resolveToken({ ...NONE, defaultFile, ...broken }, expect.unreachable)).rejects.toThrow(message);
  });

  it("does not fall through from a default file that leads nowhere", async () => {
    using directory = temporaryDirectory();
    const defaultFile = `${directory.path}/token`;
    symlinkSync("nowhere", defaultFile);
    await using server = await startMetadataServer((_request, response) => response.end("another-token"));
    const metadataService = { url: server.url, flavor: "plain" as const, attemptTimeoutMs: 1000, attempts: 1, retryDelayMs: 0 };
    await expect(resolveToken({ ...NONE, defaultFile, metadataService }, expect.unreachable)).rejects.toThrow(
      `cannot read the access token from file ${defaultFile}: no such file or directory`,
    );
    expect(server.requests).toHaveLength(0);
  });
});
