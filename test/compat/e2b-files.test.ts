import { type FilesystemEvent, FilesystemEventType } from "e2b";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { withSandbox } from "./e2b-sandbox.js";

const namedError = (name: string) => expect.objectContaining({ name });

describe("files of E2B's client", () => {
  it("are written and read in every form", () =>
    withSandbox("nobody", async ({ files }, directory) => {
      const path = `${directory}/a/file`;
      expect(await files.write(path, "content")).toEqual({ name: "file", path, type: "file" });
      expect(await files.read(path)).toBe("content");
      expect(Buffer.from(await files.read(path, { format: "bytes" })).toString()).toBe("content");
      expect(await (await files.read(path, { format: "blob" })).text()).toBe("content");
      const big = Buffer.alloc(3_000_000, "x");
      await files.write(`${directory}/big`, new Blob([big]).stream());
      let bytes = 0;
      for await (const chunk of await files.read(`${directory}/big`, { format: "stream" })) bytes += chunk.length;
      expect(bytes).toBe(big.length);
      await files.write(`${directory}/gzip`, "again ".repeat(1000), { gzip: true });
      expect(await files.read(`${directory}/gzip`, { gzip: true })).toHaveLength(6000);
      await files.write(`${directory}/octets`, "raw", { useOctetStream: true });
      expect(await files.read(`${directory}/octets`)).toBe("raw");
      await files.write(`${directory}/empty`, "");
      expect(await files.read(`${directory}/empty`)).toBe("");
      expect(await files.read(`${directory}/empty`, { format: "bytes" })).toHaveLength(0);
      expect((await files.read(`${directory}/empty`, { format: "blob" })).size).toBe(0);
      for await (const chunk of await files.read(`${directory}/empty`, { format: "stream" })) expect(chunk).toHaveLength(0);
      await expect(files.read(`${directory}/none`)).rejects.toEqual(namedError("FileNotFoundError"));
      await expect(files.write(directory, "x")).rejects.toEqual(namedError("InvalidArgumentError"));
      await expect(files.read(`${directory}/none`, { format: "stream" })).rejects.toEqual(namedError("FileNotFoundError"));
      await expect(files.read(path, { user: "nobody-at-all" })).rejects.toEqual(namedError("AuthenticationError"));
    }));

  it("are written many at a time, with metadata", () =>
    withSandbox("nobody", async ({ files }, directory) => {
      const many = ["1", "ü 2", "c/3"].map((name) => ({ path: `${directory}/${name}`, data: name }));
      const metadata = { author: "me" };
      expect(await files.write(many, { metadata })).toMatchObject(many.map(({ path }) => ({ path, metadata })));
      for (const { path, data } of many) expect(await files.read(path)).toBe(data);
      expect(await files.getInfo(`${directory}/c/3`)).toMatchObject({
        name: "3",
        type: "file",
        size: 3,
        mode: 0o644,
        permissions: "-rw-r--r--",
        owner: "nobody",
        group: "nogroup",
        metadata,
      });
      expect(await files.list(directory, { depth: 2 })).toMatchObject([
        { path: `${directory}/1`, type: "file" },
        { path: `${directory}/c`, type: "dir" },
        { path: `${directory}/c/3` },
        { path: `${directory}/ü 2` },
      ]);
      expect((await files.list(directory)).map(({ name }) => name)).toEqual(["1", "c", "ü 2"]);
      expect(await files.rename(`${directory}/1`, `${directory}/4`)).toMatchObject({ metadata });
      await files.write(`${directory}/4`, "without");
      expect((await files.getInfo(`${directory}/4`)).metadata).toBeUndefined();
    }));

  it("are renamed, removed and asked for", () =>
    withSandbox("nobody", async ({ commands, files }, directory) => {
      expect(await files.makeDir(`${directory}/made/below`)).toBe(true);
      expect(await files.makeDir(`${directory}/made/below`)).toBe(false);
      await files.write(`${directory}/old`, "x");
      await commands.run(`ln -s old ${directory}/link`, { user: "root", cwd: "/" });
      const link = { name: "link", type: "file", symlinkTarget: `${directory}/old` };
      expect(await files.getInfo(`${directory}/link`)).toMatchObject(link);
      expect(await files.rename(`${directory}/old`, `${directory}/made/new`)).toMatchObject({ path: `${directory}/made/new` });
      expect([await files.exists(`${directory}/old`), await files.exists(`${directory}/made/new`)]).toEqual([false, true]);
      await expect(files.rename(`${directory}/old`, `${directory}/x`)).rejects.toEqual(namedError("FileNotFoundError"));
      await files.remove(`${directory}/made`);
      expect(await files.exists(`${directory}/made`)).toBe(false);
      await expect(files.list(`${directory}/made`)).rejects.toEqual(namedError("FileNotFoundError"));
    }));

  it("are watched, also below", () =>
    withSandbox("nobody", async ({ files }, directory) => {
      const events: string[] = [];
      const told = (wanted: string) => eventually(`${wanted} in ${events}`, () => events.includes(wanted));
      const onEvent = ({ type, name }: { type: string; name: string }) => void events.push(`${type} ${name}`);
      const watch = await files.watchDir(directory, onEvent, { recursive: true });
      await files.write(`${directory}/file`, "x");
      await told("write file");
      expect(events).toEqual(["create file", "chmod file", "write file"]);
      await files.makeDir(`${directory}/a/b`);
      await told("create a/b");
      await files.write(`${directory}/a/b/c`, "x");
      await files.rename(`${directory}/file`, `${directory}/new`);
      await files.remove(`${directory}/new`);
      await told("remove new");
      expect(events).toEqual(expect.arrayContaining(["create a/b/c", "write a/b/c", "rename file", "create new"]));
      await watch.stop();
      const sized = Promise.withResolvers<number | undefined>();
      const onWrite = ({ type, entry }: FilesystemEvent) => {
        if (type === FilesystemEventType.WRITE) sized.resolve(entry?.size);
      };
      const withEntries = await files.watchDir(directory, onWrite, { includeEntry: true });
      await files.write(`${directory}/four`, "four");
      expect(await sized.promise).toBe(4);
      await withEntries.stop();
      await expect(files.watchDir(`${directory}/four`, onEvent)).rejects.toEqual(namedError("InvalidArgumentError"));
      await expect(files.watchDir(`${directory}/none`, onEvent)).rejects.toEqual(namedError("FileNotFoundError"));
    }));
});
