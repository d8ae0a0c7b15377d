import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectMcp } from "./connect.js";

const MIB = 1024 * 1024;

describe("what commands have printed", () => {
  it("is kept up to a limit over all sessions, the latest", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await using mcp = await connectMcp(daemon);
    const metas = Array.from({ length: 18 }, (_, index) => ({ workflow_id: `wf-${index}` }));
    for (const _meta of metas) {
      await mcp.client.callTool({ name: "sandbox_exec", arguments: { command: `head -c ${4 * MIB} /dev/zero` }, _meta });
    }
    const kept = await Promise.all(metas.map((_meta) => mcp.client.listResources({ _meta })));
    const sizes = kept.map(({ resources }) => resources.reduce((sum, { size }) => sum + Number(size), 0));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(64 * MIB);
    expect([sizes[0], sizes.at(-1)]).toEqual([0, 4 * MIB]);
  });
});
