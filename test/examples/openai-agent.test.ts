import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { ChatServer, type Turn } from "../helpers/chat-server.js";
import { eventually } from "../helpers/eventually.js";
import { PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const EXAMPLE = join(import.meta.dirname, "../../examples/openai-agent.ts");

/** Runs the example to its end. */
async function runAgent(chat: ChatServer, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { PATH = "" } = process.env;
  const model = { OPENAI_BASE_URL: chat.url, OPENAI_API_KEY: chat.apiKey };
  const all = { PATH: `${dirname(PICOD)}:${PATH}`, PICOD_ACCESS_TOKEN: TOKEN, ...model, ...env };
  const child = spawn(process.execPath, [EXAMPLE, ...args], { env: all, stdio: ["ignore", "pipe", "pipe"] });
  const [[code], stdout, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

describe("the agent behind OpenAI's API", () => {
  it("calls the sandbox's tools, hears what went wrong, and answers", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    const script: Turn[] = [
      [
        ["sandbox_fs_write", { path: "count.sh", content: "echo $((20 + 1))\n" }],
        ["sandbox_fs_edit", { path: "count.sh", old_string: "1))", new_string: "2))" }],
        ["sandbox_process_start", { command: "sleep 1000" }],
      ],
      [
        ["sandbox_fs_edit", { path: "count.sh", old_string: "absent", new_string: "x" }],
        ["sandbox_exec", '{"command": '],
        ["no_such_tool", {}],
        ["sandbox_exec", { command: "sh count.sh", timeout_seconds: 1_000_000 }],
      ],
      [["sandbox_exec", { command: "sh count.sh; exit 3" }]],
    ];
    await using chat = await ChatServer.start(({ messages }) => {
      const next = script.shift();
      return next ?? `The last tool said: ${messages.at(-1)?.content}`;
    });
    const { code, stdout } = await runAgent(chat, ["--url", daemon.url, "--model", "tested", "Count", "to 22"]);
    expect(stdout).toMatch(/^The last tool said: \{"exit_code":3,"stdout":"22\\n"/);
    expect(code).toBe(0);
    const [first, , third] = chat.requests;
    expect(first).toMatchObject({ model: "tested", messages: [{ role: "system" }, { role: "user", content: "Count to 22" }] });
    expect(first?.tools.map((tool) => tool.function.name)).toContain("sandbox_fs_edit");
    const told = third?.messages.filter(({ role }) => role === "tool").map(({ content }) => content) ?? [];
    expect(told.slice(3)).toEqual([
      expect.stringMatching(/^error: TEXT_NOT_FOUND: .* occurs 0 times/),
      expect.stringMatching(/^error: .*JSON/),
      expect.stringMatching(/^error: .*no such tool: no_such_tool/),
      expect.stringMatching(/^error: LIMIT_EXCEEDED: .*timeout_seconds is 300/),
    ]);
    await eventually("what it has started is gone", () => daemon.children().length === 0);
  });

  it("works on this machine without a daemon, and gives up after so many turns", async () => {
    using directory = temporaryDirectory();
    await using chat = await ChatServer.start(() => [["sandbox_exec", { command: "pwd" }]]);
    const env = { PICOD_WORKDIR: directory.path };
    const { code, stdout, stderr } = await runAgent(chat, ["--max-turns", "2", "Never stop"], env);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("no answer after 2 turns");
    expect(chat.requests).toHaveLength(2);
    expect(chat.requests[1]?.messages.at(-1)?.content).toContain(`"stdout":"${directory.path}/`);
  });

  it("says what is wrong with the model or the sandbox", async () => {
    await using daemon = await startDaemon();
    await using chat = await ChatServer.start(() => "unused");
    const wrongKey = await runAgent(chat, ["--url", daemon.url, "task"], { OPENAI_API_KEY: "wrong" });
    expect([wrongKey.code, wrongKey.stderr]).toEqual([1, expect.stringContaining("Incorrect API key")]);
    const wrongToken = await runAgent(chat, ["--url", daemon.url, "task"], { PICOD_ACCESS_TOKEN: "wrong" });
    expect([wrongToken.code, wrongToken.stderr]).toEqual([1, expect.stringContaining("wrong access token")]);
    expect(chat.requests).toEqual([]);
  });
});
