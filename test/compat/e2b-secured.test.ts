import { Sandbox } from "e2b";
import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { sandboxAt, withSecuredSandbox } from "./e2b-sandbox.js";

const AUTHENTICATION_ERROR = expect.objectContaining({ name: "AuthenticationError" });

describe("E2B's client with a token", () => {
  it("signs addresses of files", () =>
    withSecuredSandbox(async (sandbox, home) => {
      const path = `${home}/ü and space`;
      await sandbox.files.write(path, "content");
      for (const options of [{}, { useSignatureExpiration: 100 }, { user: "root" }]) {
        expect(await (await fetch(await sandbox.downloadUrl(path, options))).text()).toBe("content");
      }
      const refusal = async (url: string, init?: RequestInit) => {
        const answer = await fetch(url, init);
        return [answer.status, await answer.json()];
      };
      const expired = await sandbox.downloadUrl(path, { useSignatureExpiration: -10 });
      expect(await refusal(expired)).toEqual([401, { code: 401, message: "signature is already expired" }]);
      const invalid = [401, { code: 401, message: "invalid signature" }];
      const right = await sandbox.downloadUrl(path);
      expect(await refusal(right.replace("and", "nor"))).toEqual(invalid);
      expect(await refusal(right, { method: "POST", body: "x" })).toEqual(invalid);
      const form = new FormData();
      form.append("file", "uploaded");
      const uploaded = await fetch(await sandbox.uploadUrl(path, { useSignatureExpiration: 100 }), {
        method: "POST",
        body: form,
      });
      expect([uploaded.status, await sandbox.files.read(path)]).toEqual([200, "uploaded"]);
    }));

  it("is refused without it, and with another", () =>
    withSecuredSandbox(async ({ files }, home, url) => {
      await files.write(`${home}/file`, "content");
      for (const token of [undefined, "wrong"]) {
        const sandbox = sandboxAt(url, token);
        await expect(sandbox.files.list("/")).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.files.read(`${home}/file`)).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.files.write(`${home}/file`, "x")).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.files.watchDir(home, () => undefined)).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.commands.list()).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.commands.run("true")).rejects.toEqual(AUTHENTICATION_ERROR);
        await expect(sandbox.pty.create({ cols: 80, rows: 24, onData: () => undefined })).rejects.toEqual(AUTHENTICATION_ERROR);
      }
      // The daemon's own token is one of theirs too, but what is signed with it cannot be verified.
      const own = sandboxAt(url, TOKEN);
      expect(await own.files.read(`${home}/file`)).toBe("content");
      expect((await fetch(await own.downloadUrl(`${home}/file`))).status).toBe(401);
    }));

  it("needs none in debug mode at an address that asks for none", async () => {
    await using daemon = await startDaemon({ args: ["--also-listen", "127.0.0.1:0,no-auth"] });
    const { alsoListening } = await daemon.waitForLog(({ msg }) => msg === "server listening");
    const open = { debug: true, sandboxUrl: `http://${(alsoListening as string[])[0]}` };
    for (const sandbox of [await Sandbox.create(open), await Sandbox.connect("any", open)]) {
      expect([await sandbox.isRunning(), await sandbox.commands.list()]).toEqual([true, []]);
      await expect(sandboxAt(daemon.url).commands.list()).rejects.toEqual(AUTHENTICATION_ERROR);
    }
  });

  it("runs commands and terminals, and watches", () =>
    withSecuredSandbox(async ({ commands, files, pty }, home) => {
      expect((await commands.run("echo $A", { envs: { A: "b" } })).stdout).toBe("b\n");
      const written = Promise.withResolvers<void>();
      const watch = await files.watchDir(home, ({ type, name }) => {
        if (type === "write" && name === "file") written.resolve();
      });
      const terminal = await pty.create({ cols: 80, rows: 24, onData: () => undefined });
      await pty.sendInput(terminal.pid, Buffer.from(`echo content > ${home}/file; exit\n`));
      expect(await terminal.wait()).toMatchObject({ exitCode: 0 });
      await written.promise;
      await watch.stop();
    }));
});

describe("git of E2B's client", () => {
  const author = { authorName: "A", authorEmail: "a@example.com" };

  it("keeps a repository", () =>
    withSecuredSandbox(async ({ commands, files, git }, home) => {
      const path = `${home}/repository`;
      await git.init(path, { initialBranch: "main" });
      await files.write(`${path}/file`, "one");
      expect(await git.status(path)).toMatchObject({ isClean: false, fileStatus: [{ name: "file", status: "untracked" }] });
      await git.add(path);
      expect(await git.status(path)).toMatchObject({ hasStaged: true, fileStatus: [{ status: "added", staged: true }] });
      await git.configureUser("C", "c@example.com");
      expect(await git.getConfig("user.name", { scope: "global" })).toBe("C");
      await git.setConfig("pull.rebase", "true", { scope: "local", path });
      expect(await git.getConfig("pull.rebase", { scope: "local", path })).toBe("true");
      await git.commit(path, "first", { authorName: "B" });
      const { stdout } = await commands.run("git log -1 --pretty='%an %ae %s'", { cwd: path });
      expect(stdout).toBe("B c@example.com first\n");
      await git.createBranch(path, "other");
      const { branches, currentBranch } = await git.branches(path);
      expect([currentBranch, branches.toSorted()]).toEqual(["other", ["main", "other"]]);
      await git.checkoutBranch(path, "main");
      await git.deleteBranch(path, "other", { force: true });
      expect((await git.branches(path)).branches).toEqual(["main"]);
      await files.write(`${path}/file`, "changed");
      await git.add(path, { files: ["file"] });
      await git.restore(path, { paths: ["file"], staged: true, worktree: false });
      expect(await git.status(path)).toMatchObject({ hasStaged: false, hasChanges: true });
      await git.reset(path, { mode: "hard", target: "HEAD" });
      expect([await files.read(`${path}/file`), (await git.status(path)).isClean]).toEqual(["one", true]);
      await git.dangerouslyAuthenticate({ username: "git", password: "token", host: "example.com", protocol: "https" });
      expect(await git.getConfig("credential.helper", { scope: "global" })).toBe("store");
    }));

  it("clones, pushes and pulls", () =>
    withSecuredSandbox(async ({ files, git }, home) => {
      const [path, remote, clone] = [`${home}/repository`, `${home}/remote.git`, `${home}/clone`];
      await git.init(remote, { bare: true, initialBranch: "main" });
      await git.init(path, { initialBranch: "main" });
      const commit = async (content: string) => {
        await files.write(`${path}/file`, content);
        await git.add(path);
        await git.commit(path, content, author);
      };
      await commit("one");
      expect(await git.remoteGet(path, "origin")).toBeUndefined();
      await git.remoteAdd(path, "origin", "/no/such");
      await git.remoteAdd(path, "origin", remote, { overwrite: true });
      expect(await git.remoteGet(path, "origin")).toBe(remote);
      await expect(git.pull(path)).rejects.toThrow(/no upstream branch is configured/i);
      await git.push(path, { remote: "origin", branch: "main", setUpstream: true });
      await git.clone(remote, { path: clone });
      await commit("two");
      await git.push(path);
      await git.pull(clone);
      expect(await files.read(`${clone}/file`)).toBe("two");
    }));
});
