import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { ask } from "../rpc/support/http1.js";

/** Ignored by git, kept to be looked at. */
const SCREENSHOTS = join(import.meta.dirname, "../../coverage/terminal");
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let browser: Browser;

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ARGUMENTS });
});

afterAll(() => browser.close());

interface Proxy extends AsyncDisposable {
  readonly url: string;
  /** Cuts every connection, and takes none until `mend`. */
  cut(): void;
  mend(): void;
}

/** Stands between browser and daemon, as networks do. */
async function startProxy(daemon: Daemon): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let broken = false;
  const server = createServer((near) => {
    if (broken) return near.destroy();
    const far = connect(daemon.port, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket
        .on("error", () => undefined)
        .on("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
      socket.pipe(other);
    }
  });
  const cut = () => {
    broken = true;
    for (const socket of sockets) socket.destroy();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    mend: () => {
      broken = false;
    },
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
    },
  };
}

interface TerminalPage extends AsyncDisposable {
  readonly page: Page;
  /** Complaints of the browser, about the content security policy above all. */
  readonly complaints: string[];
  /** Lines on the screen. */
  screen(): Promise<string>;
  shows(text: string | RegExp): Promise<void>;
  type(text: string): Promise<void>;
  status(): Promise<string | null>;
}

async function openPage(url: string, token = TOKEN): Promise<TerminalPage> {
  const context = await browser.newContext({ viewport: { width: 900, height: 500 } });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  await page.fill("#token", token);
  await page.click("button");
  const screen = async () => {
    const rows = await page.locator(".xterm-rows > div").allTextContents();
    return rows.map((row) => row.replaceAll("\u00a0", " ").trimEnd()).join("\n");
  };
  return {
    page,
    complaints,
    screen,
    async shows(text) {
      const pattern = typeof text === "string" ? { test: (shown: string) => shown.includes(text) } : text;
      await eventually(`the screen shows ${text}`, async () => pattern.test(await screen())).catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await screen()}`);
      });
    },
    async type(text) {
      await page.locator(".xterm-helper-textarea").focus();
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    },
    status: () => page.locator("#status").textContent(),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

/** What stty prints on the last line that has such. */
async function sizeOf(terminal: TerminalPage, marker: string): Promise<{ rows: number; cols: number }> {
  await terminal.type(`echo ${marker}=$(stty size)`);
  const pattern = new RegExp(`^${marker}=(\\d+) (\\d+)$`, "m");
  await terminal.shows(pattern);
  const [, rows, cols] = pattern.exec(await terminal.screen()) ?? [];
  return { rows: Number(rows), cols: Number(cols) };
}

describe("the terminal page", () => {
  it("is a terminal for whoever has the token, and tells others why it is none", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"], env: { PICOD_ACCESS_TOKEN: TOKEN, HOME: "/root" } });
    await using wrong = await openPage(`${daemon.url}/terminal`, "wrong");
    await eventually("the page says so", async () => {
      return (await wrong.page.locator("#problem").textContent())?.includes("access token") ?? false;
    });
    await using terminal = await openPage(`${daemon.url}/terminal`);
    await terminal.type("echo $((6*7)) $(tty)");
    await terminal.shows(/^42 \/dev\/pts\/\d+$/m);
    const storage = await terminal.page.evaluate(
      "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])",
    );
    expect(storage).not.toContain(TOKEN);
    expect(terminal.complaints).toEqual([]);
    await terminal.type("exit 3");
    await eventually("the page tells the end", async () => (await terminal.status()) === "ended: exited, exit code 3");
  });

  it("gives the shell the size of its window", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"] });
    await using terminal = await openPage(`${daemon.url}/terminal`);
    const before = await sizeOf(terminal, "before");
    await terminal.page.setViewportSize({ width: 1300, height: 800 });
    await eventually("the shell has the new size", async () => {
      const { rows, cols } = await sizeOf(terminal, `after${Math.round(performance.now())}`);
      return rows > before.rows && cols > before.cols;
    });
    expect(terminal.complaints).toEqual([]);
  });

  it("keeps its screen and its shell when the connection is cut", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"] });
    await using proxy = await startProxy(daemon);
    await using terminal = await openPage(`${proxy.url}/terminal`);
    await terminal.type("variable=kept; echo before-$((1))");
    await terminal.shows(/^before-1$/m);
    await terminal.type("(sleep 0.5; echo meanwhile-$((2))) &");
    // What is on the way when the connection breaks is lost.
    await terminal.shows(/^\[1\] \d+$/m);
    proxy.cut();
    await eventually("the page notices", async () => (await terminal.status()) === "reconnecting…");
    proxy.mend();
    await eventually("the page is connected again", async () => (await terminal.status()) === "connected");
    await terminal.shows(/meanwhile-2/);
    await terminal.type("echo still-$variable");
    await terminal.shows(/^still-kept$/m);
    const screen = await terminal.screen();
    expect(screen.match(/^before-1$/gm)).toHaveLength(1);
    await terminal.page.screenshot({ path: join(SCREENSHOTS, "reconnected.png") });
  });

  it("shows one shell on two pages", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"] });
    await using one = await openPage(`${daemon.url}/terminal`);
    await one.type("echo first-$((1))");
    await one.shows(/^first-1$/m);
    await using two = await openPage(one.page.url());
    await two.shows(/^first-1$/m);
    await two.type("echo second-$((2))");
    await one.shows(/^second-2$/m);
    await two.shows(/^second-2$/m);
    await eventually("both screens are the same", async () => (await two.screen()) === (await one.screen()));
    expect(two.complaints).toEqual([]);
  });

  it("draws colours and wide characters", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"] });
    await using terminal = await openPage(`${daemon.url}/terminal`);
    const characters = "\\346\\274\\242\\345\\255\\227 \\303\\251";
    await terminal.type(
      `printf '\\033[1;32mgreen\\033[0m \\033[41mred\\033[0m ${characters}\\n'; ls -la --color=always / | head -12`,
    );
    await terminal.shows(/^green red 漢字 é$/m);
    await terminal.page.screenshot({ path: join(SCREENSHOTS, "colours.png") });
    expect(terminal.complaints).toEqual([]);
  });

  it("is served with a strict policy, and only where it is asked for", async () => {
    await using daemon = await startDaemon({ args: ["--terminal-page"] });
    for (const path of ["/terminal", "/terminal/terminal.js", "/terminal/terminal.css"]) {
      const { status, headers } = await ask(daemon, path);
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        "content-security-policy": expect.stringMatching(/^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/),
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
      });
    }
    await using without = await startDaemon();
    expect((await ask(without, "/terminal", { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(404);
  });
});
