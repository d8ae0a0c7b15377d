import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { converse, followToEnd, PTY } from "./support/processes.js";

describe("a terminal", () => {
  it("can be opened as /dev/tty by another user too, whose it is", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const command = "id -un; stat -c %U $(tty); echo typed here > /dev/tty; read answer < /dev/tty; echo got $answer";
    const text = await converse(clients, { command, user: "nobody", cwd: "/" }, [["typed here\r\n", "yes\r"]]);
    expect(text).toBe("nobody\r\nnobody\r\ntyped here\r\nyes\r\ngot yes\r\n");
  });

  it("says xterm-256color unless the request says otherwise, and starts the user's shell when nothing else is asked for", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const text = await converse(clients, { env: { PS1: "> " } }, [["", "echo term $TERM; exit 3\r"]]);
    expect(text).toContain("term xterm-256color\r\n");
    expect(text).not.toContain("job control");
    expect(await converse(clients, { command: "echo $TERM", env: { TERM: "dumb" } }, [])).toBe("dumb\r\n");
  });

  it("passes raw bytes on as they are, both ways", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index)).toString("latin1");
    const text = await converse(
      clients,
      { command: "stty raw -echo; echo ready; head -c 256 | od -An -v -tu1 -w256; head -c 256" },
      [
        ["ready\n", bytes],
        ["255\n", bytes],
      ],
    );
    expect(text.slice("ready\n".length).trimStart().split(/\s+/).slice(0, 256).map(Number)).toEqual(
      Array.from({ length: 256 }, (_, index) => index),
    );
    expect(text.slice(-256)).toBe(bytes);
  });

  it("outlasts a program that closes it for a while", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const command = "terminal=$(tty); exec < /dev/null > /dev/null 2>&1; sleep 0.3; echo back again > $terminal; exit 5";
    const { text, ended } = await followToEnd(clients.process.start({ command, pty: PTY }));
    expect([text, ended.outcome?.exitCode]).toEqual(["back again\r\n", 5]);
  });
});
