import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { copy } from "../../src/filesystem/copy.js";
import { listDirectory } from "../../src/filesystem/list-directory.js";
import { makeDirectory } from "../../src/filesystem/make-directory.js";
import { move } from "../../src/filesystem/move.js";
import { remove } from "../../src/filesystem/remove.js";
import { setAttributes } from "../../src/filesystem/set-attributes.js";
import { stat } from "../../src/filesystem/stat.js";
import { InPlaceWriter } from "../../src/filesystem/writing/write-in-place.js";
import { accessGranted, readWhole, writeWhole } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const never = new AbortController().signal;
const DENIED = { reason: "POLICY_DENIED" };

/** `in` is granted, `out` is not; everybody may do everything with either, as far as the kernel is concerned. */
function makePlaces() {
  const directory = temporaryDirectory();
  chmodSync(directory.path, 0o777);
  for (const name of ["in", "in/d", "out", "out/d"]) {
    mkdirSync(`${directory.path}/${name}`);
    chmodSync(`${directory.path}/${name}`, 0o777);
  }
  const canary = `${directory.path}/out/canary`;
  const secret = randomBytes(16).toString("hex");
  writeFileSync(canary, secret);
  chmodSync(canary, 0o666);
  writeFileSync(`${directory.path}/in/file`, "granted");
  chmodSync(`${directory.path}/in/file`, 0o666);
  return {
    at: (name: string) => `${directory.path}/${name}`,
    canary,
    secret,
    isUntouched: () => readFileSync(canary, "utf8") === secret && readdirSync(`${directory.path}/out`).join() === "canary,d",
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}

async function listed(access: Access, path: string, depth = 0): Promise<string[]> {
  const paths: string[] = [];
  for await (const { entries } of listDirectory(access, path, depth, never)) paths.push(...entries.map((entry) => entry.path));
  return paths;
}

describe.each(["root", "nobody"])("what is granted to %s", (user) => {
  const grant = (at: (name: string) => string) => accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] }, user);

  it("can be read, written, made, moved, copied and removed", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = grant(at);
    expect((await readWhole(access, at("in/file"))).content.toString()).toBe("granted");
    await writeWhole(access, at("in/new/deep/file"), "new");
    expect((await readWhole(access, at("in/new/deep/file"))).content.toString()).toBe("new");
    await writeWhole(access, at("in/new/deep/file"), "replaced");
    await writeWhole(access, at("in/new/deep/file"), "X", { offset: 0n });
    expect(readFileSync(at("in/new/deep/file"), "utf8")).toBe("Xeplaced");
    makeDirectory(access, at("in/made/a"));
    await move(access, at("in/new"), at("in/made/moved"), "replace", never);
    await copy(access, at("in/made"), at("in/copied"), {}, never);
    await copy(access, at("in/made"), at("in/copied"), {}, never);
    expect(readFileSync(at("in/copied/moved/deep/file"), "utf8")).toBe("Xeplaced");
    setAttributes(access, at("in/copied/moved/deep/file"), { mode: 0o640 });
    const writer = new InPlaceWriter(access, at("in/place/file"));
    await writer.write(Buffer.from("in place"));
    writer.close();
    expect(readFileSync(at("in/place/file"), "utf8")).toBe("in place");
    symlinkSync("file", at("in/link"));
    expect(stat(access, at("in/link"), true).kind).toBe("file");
    expect(await remove(access, at("in/copied"), { recursive: true }, never)).toBe(5);
    expect(await listed(access, at("in"))).not.toContain(at("in/copied"));
    expect(stat(access, at("in"), true).kind).toBe("directory");
    expect(places.isUntouched()).toBe(true);
  });

  it("is all that is shown of what leads there", async () => {
    using places = makePlaces();
    const { at } = places;
    expect(await listed(grant(at), at(""))).toEqual([at("in"), at("in/d"), at("in/file")]);
  });

  it("is all that can be reached", async () => {
    using places = makePlaces();
    const { at, canary } = places;
    const access = grant(at);
    symlinkSync(canary, at("in/link"));
    symlinkSync("../out/canary", at("in/relative"));
    symlinkSync(at("out"), at("in/directory"));
    symlinkSync(at("out/new"), at("in/dangling"));
    symlinkSync(at("out/none/new"), at("in/dangling-deep"));
    const own = openSync(canary, "r");
    try {
      for (const path of [
        canary,
        at("in/link"),
        at("in/relative"),
        at("in/directory/canary"),
        at("in/d/../../out/canary"),
        at("in/directory/d/../canary"),
        `/proc/self/fd/${own}`,
        `/proc/self/root${canary}`,
        `/proc/${process.ppid}/root${canary}`,
        `/proc/self/cwd${canary}`,
        canary.replace("/out/", "/OUT/"),
        canary.replace("/out/", "/\uff4fut/"),
        `${at("in")}\n/../out/canary`,
      ]) {
        await expect.soft(readWhole(access, path), `read ${path}`).rejects.toMatchObject(DENIED);
        expect.soft(() => stat(access, path, true), `stat ${path}`).toThrow(expect.objectContaining(DENIED));
        await expect.soft(writeWhole(access, path, "x"), `write ${path}`).rejects.toMatchObject(DENIED);
        await expect.soft(writeWhole(access, path, "x", { offset: 0n }), `patch ${path}`).rejects.toMatchObject(DENIED);
        expect.soft(() => new InPlaceWriter(access, path), `in place ${path}`).toThrow(expect.objectContaining(DENIED));
        expect.soft(() => setAttributes(access, path, { mode: 0o600 }), path).toThrow(expect.objectContaining(DENIED));
      }
      for (const path of [at("in/dangling"), at("in/dangling-deep"), at("out/new"), at("new"), at("in/directory/new/a")]) {
        await expect.soft(writeWhole(access, path, "x"), path).rejects.toMatchObject(DENIED);
        expect.soft(() => new InPlaceWriter(access, path), path).toThrow(/POLICY_DENIED|may not|ELOOP/);
        expect.soft(() => makeDirectory(access, `${path}/d`), path).toThrow(expect.objectContaining(DENIED));
      }
      for (const path of [canary, at("in/directory/canary"), at("out"), at("in"), at("out/d")]) {
        await expect.soft(remove(access, path, { recursive: true }, never), path).rejects.toMatchObject(DENIED);
        await expect.soft(move(access, path, at("in/moved"), "replace", never), path).rejects.toMatchObject(DENIED);
        await expect.soft(move(access, at("in/file"), path, "replace", never), path).rejects.toMatchObject(DENIED);
        await expect.soft(move(access, at("in/file"), path, "exchange", never), path).rejects.toMatchObject(DENIED);
        await expect.soft(copy(access, at("in/file"), path, {}, never), path).rejects.toMatchObject(DENIED);
      }
      await expect.soft(copy(access, at("out"), at("in/copied"), {}, never)).rejects.toMatchObject(DENIED);
      await expect.soft(copy(access, canary, at("in/copied"), {}, never)).rejects.toMatchObject(DENIED);
    } finally {
      closeSync(own);
    }
    expect(readFileSync(at("in/file"), "utf8")).toBe("granted");
    expect(places.isUntouched()).toBe(true);
  });

  it("is told nothing of what is missing elsewhere", () => {
    using places = makePlaces();
    const { at } = places;
    symlinkSync(at("out/none"), at("in/dangling"));
    for (const path of [at("out/none"), at("none"), at("out/canary/x"), at("in/dangling"), at("in/none/../../out/none")]) {
      expect.soft(() => stat(grant(at), path, true), path).toThrow(expect.objectContaining(DENIED));
    }
    expect(() => stat(grant(at), at("in/none"), true)).toThrow("ENOENT");
  });
});

describe("a file with several names", () => {
  it("is neither read nor written where others may be elsewhere", async () => {
    using places = makePlaces();
    const { at, canary } = places;
    linkSync(canary, at("in/hard"));
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] });
    await expect(readWhole(access, at("in/hard"))).rejects.toMatchObject(DENIED);
    await expect(writeWhole(access, at("in/hard"), "x")).rejects.toMatchObject(DENIED);
    await expect(writeWhole(access, at("in/hard"), "x", { offset: 0n })).rejects.toMatchObject(DENIED);
    expect(() => new InPlaceWriter(access, at("in/hard"))).toThrow(expect.objectContaining(DENIED));
    expect(() => setAttributes(access, at("in/hard"), { mode: 0 })).toThrow(expect.objectContaining(DENIED));
    await expect(copy(access, at("in/hard"), at("in/copy"), {}, never)).rejects.toMatchObject(DENIED);
    expect(stat(access, at("in/hard"), true).hardLinks).toBe(2n);
    await remove(access, at("in/hard"), {}, never);
    expect(places.isUntouched()).toBe(true);
  });

  it("is both where every path is granted", async () => {
    using places = makePlaces();
    const { at, canary } = places;
    linkSync(canary, at("in/hard"));
    const access = accessGranted({ readPaths: ["/**"], writePaths: ["/**"] });
    expect((await readWhole(access, at("in/hard"))).content.toString()).toBe(places.secret);
    await writeWhole(access, at("in/hard"), "x");
    expect(readFileSync(canary, "utf8")).toBe("x");
  });
});

describe("what may only be written", () => {
  it("is not read by moving or copying it", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**"), at("out/**")] });
    mkdirSync(at("out/tree"));
    writeFileSync(at("out/tree/a"), "secret");
    await writeWhole(access, at("out/dropped"), "x");
    for (const path of [at("out/canary"), at("out/tree")]) {
      await expect(move(access, path, at("in/got"), "replace", never)).rejects.toMatchObject(DENIED);
      await expect(copy(access, path, at("in/got"), {}, never)).rejects.toMatchObject(DENIED);
    }
    await expect(move(access, at("in/d"), at("out/tree"), "exchange", never)).rejects.toMatchObject(DENIED);
    expect(existsSync(at("in/got"))).toBe(false);
    expect(await remove(access, at("out/tree"), { recursive: true }, never)).toBe(2);
  });
});

describe("a denied path", () => {
  it("is denied with all that is below, whatever else grants it", async () => {
    using places = makePlaces();
    const { at, canary } = places;
    const access = accessGranted({ readPaths: ["/**"], writePaths: ["/**"], deniedPaths: [at("out")] });
    await expect(readWhole(access, canary)).rejects.toMatchObject(DENIED);
    expect(await listed(access, at(""))).toEqual([at("in"), at("in/d"), at("in/file")]);
    // They hold it.
    const above = at("").replace(/\/$/, "");
    await expect(move(access, above, `${above}-moved`, "replace", never)).rejects.toMatchObject(DENIED);
    await expect(remove(access, above, { recursive: true }, never)).rejects.toMatchObject(DENIED);
    await expect(copy(access, above, at("in/copy"), {}, never)).rejects.toThrow();
    expect(existsSync(at("in/file"))).toBe(true);
    expect(places.isUntouched()).toBe(true);
  });
});

describe("a limit of a file's size", () => {
  it("is kept to the byte, whichever way a file is written", async () => {
    using places = makePlaces();
    const { at } = places;
    const limited = { reason: "POLICY_LIMIT_REACHED", metadata: { limit: "max_file_size_bytes", value: "5" } };
    const access = accessGranted({ readPaths: ["/**"], writePaths: ["/**"], maxFileSizeBytes: 5 });
    await writeWhole(access, at("in/fits"), "12345");
    await expect(writeWhole(access, at("in/big"), "123456")).rejects.toMatchObject(limited);
    await expect(writeWhole(access, at("in/big"), "", { size: 6n })).rejects.toMatchObject(limited);
    await expect(writeWhole(access, at("in/fits"), "6", { offset: 5n })).rejects.toMatchObject(limited);
    await expect(copy(access, places.canary, at("in/big"), {}, never)).rejects.toMatchObject(limited);
    const writer = new InPlaceWriter(access, at("in/place"));
    await writer.write(Buffer.from("123"));
    await expect(writer.write(Buffer.from("456"))).rejects.toMatchObject(limited);
    writer.close();
    expect(readdirSync(at("in")).sort()).toEqual(["d", "file", "fits", "place"]);
    expect(readFileSync(at("in/fits"), "utf8")).toBe("12345");
  });
});

describe("a name", () => {
  it("that ends as the kernel marks deleted files is one all the same", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] });
    await writeWhole(access, at("in/x (deleted)"), "there");
    expect((await readWhole(access, at("in/x (deleted)"))).content.toString()).toBe("there");
    const only = accessGranted({ readPaths: [at("in/x (deleted)")] });
    expect((await readWhole(only, at("in/x (deleted)"))).content.toString()).toBe("there");
  });

  it("that lies so deep that the kernel tells no path of it is not shown, and keeps nothing else from being shown", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] });
    const script = `
import os, sys
os.chdir(sys.argv[1])
for level in range(20):
  os.mkdir("x" * 250)
  os.chdir("x" * 250)
open("deepest", "w")
`;
    execFileSync("python3", ["-c", script, at("in/d")]);
    const shown = (await listed(access, at("in"))).map((path) => path.length);
    expect(shown).toContain(at("in/file").length);
    expect(Math.max(...shown)).toBeGreaterThan(3_500);
    expect(Math.max(...shown)).toBeLessThan(4_500);
  });

  it("of the form that PicoD keeps for itself is nobody's", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/*.txt")] });
    const hidden = at("in/.picod-0123456789abcdef.tmp");
    writeFileSync(hidden, "of another call");
    await expect(readWhole(access, hidden)).rejects.toMatchObject(DENIED);
    await expect(writeWhole(access, hidden, "x")).rejects.toMatchObject(DENIED);
    await expect(remove(access, hidden, {}, never)).rejects.toMatchObject(DENIED);
    await writeWhole(access, at("in/a.txt"), "x");
    await writeWhole(access, at("in/a.txt"), "y");
    await expect(writeWhole(access, at("in/a.png"), "x")).rejects.toMatchObject(DENIED);
    expect(readFileSync(at("in/a.txt"), "utf8")).toBe("y");
  });
});

describe("who swaps links and directories", () => {
  it("leads no call elsewhere", async () => {
    using places = makePlaces();
    const { at, secret } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] });
    writeFileSync(at("in/d/canary"), "granted");
    execFileSync("cp", ["-r", at("in/d"), at("in/kept")]);
    symlinkSync(at("out"), at("in/l"));
    let outcomes = 0;
    for (let round = 0; round < 300; round++) {
      // Each changes between two steps of the call.
      const swapped = readWhole(access, at("in/d/canary")).then(
        ({ content }) => content.toString(),
        () => "failed",
      );
      renameSync(at("in/d"), at("in/away"));
      renameSync(at("in/l"), at("in/d"));
      const written = writeWhole(access, at("in/d/canary"), "written").catch(() => undefined);
      renameSync(at("in/d"), at("in/l"));
      renameSync(at("in/away"), at("in/d"));
      expect(await swapped).not.toBe(secret);
      await written;
      outcomes++;
    }
    expect(outcomes).toBe(300);
    expect(places.isUntouched()).toBe(true);
  });

  it("moves what is being written out of what is granted in vain", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")], writePaths: [at("in/**")] });
    const { FileWriter } = await import("../../src/filesystem/write-file.js");
    const writer = new FileWriter(access, at("in/d/file"), {});
    await writer.write(Buffer.from("x"));
    renameSync(at("in/d"), at("out/moved"));
    await expect(writer.commit()).rejects.toMatchObject(DENIED);
    writer.close();
    expect(readdirSync(at("out/moved"))).toEqual([]);
  });
});

describe("paths that a token is confined to", () => {
  it("count beside those that the policy grants", async () => {
    using places = makePlaces();
    const { at } = places;
    mkdirSync(at("in/both"));
    writeFileSync(at("in/both/file"), "x");
    const access = accessGranted({ readPaths: [at("in/both/**"), at("out/**")] }, "root", { prefixes: [at("in")] });
    await expect(readWhole(access, at("in/both/file"))).resolves.toBeDefined();
    await expect(readWhole(access, at("in/file"))).rejects.toMatchObject(DENIED);
    await expect(readWhole(access, places.canary)).rejects.toThrow();
  });
});

describe("a root", () => {
  it("changes nothing of what paths a policy means", async () => {
    using places = makePlaces();
    const { at } = places;
    const access = accessGranted({ readPaths: [at("in/**")] }, "root", { root: at("") });
    expect((await readWhole(access, "/in/file")).content.toString()).toBe("granted");
    await expect(readWhole(access, "/out/canary")).rejects.toMatchObject(DENIED);
    expect(() => stat(access, "/none", true)).toThrow(expect.objectContaining(DENIED));
    expect(() => stat(access, "/in/none", true)).toThrow("ENOENT");
    expect(statSync(at("in")).isDirectory()).toBe(true);
    chownSync(at("in"), 0, 0);
  });
});
