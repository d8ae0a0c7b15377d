import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { OutputCollector } from "../../src/process/output-collector.js";

function collect(limit: number, chunks: readonly (string | Uint8Array)[]) {
  const collector = new OutputCollector(limit);
  for (const chunk of chunks) collector.push(Buffer.from(chunk as Uint8Array));
  return collector.collect();
}

/** What the definition says, computed from everything at once; for valid UTF-8 of one byte a character. */
function expected(limit: number, all: string) {
  if (all.length <= limit) return { text: all, totalBytes: all.length, omittedBytes: 0, omittedLines: 0, utf8Replaced: false };
  const head = Math.ceil(limit / 2);
  const omitted = all.slice(head, all.length - (limit - head));
  return {
    text: all.slice(0, head) + all.slice(all.length - (limit - head)),
    totalBytes: all.length,
    omittedBytes: omitted.length,
    omittedLines: omitted.split("\n").length - 1,
    utf8Replaced: false,
  };
}

describe("OutputCollector", () => {
  it("keeps everything up to the limit", () => {
    expect(collect(10, ["hello ", "you!"])).toMatchObject(expected(10, "hello you!"));
    expect(collect(10, [])).toMatchObject(expected(10, ""));
  });

  it("keeps head and tail beyond it, with exact counts, however the stream is cut into chunks", () => {
    const all = Array.from({ length: 500 }, (_, index) => `line ${index}\n`).join("");
    for (const limit of [0, 1, 2, 7, 100, 1023, 1024, 4000, all.length - 1, all.length]) {
      for (const chunkBytes of [1, 3, 64, 1000, all.length]) {
        const chunks = Array.from({ length: Math.ceil(all.length / chunkBytes) }, (_, index) =>
          all.slice(index * chunkBytes, (index + 1) * chunkBytes),
        );
        expect(collect(limit, chunks), `limit ${limit}, chunks of ${chunkBytes}`).toMatchObject(expected(limit, all));
      }
    }
  });

  it("cuts between characters, and counts the bytes that this costs", () => {
    const output = collect(11, ["ééééé€€€€€"]);
    expect(output).toMatchObject({ text: "ééé€", totalBytes: 25, omittedBytes: 25 - 9, utf8Replaced: false });
    expect(collect(7, ["😀😀😀😀"])).toMatchObject({ text: "😀", totalBytes: 16, omittedBytes: 12, utf8Replaced: false });
  });

  it("joins a character that chunks have split", () => {
    const bytes = Buffer.from("a€b");
    expect(collect(100, [bytes.subarray(0, 2), bytes.subarray(2)])).toMatchObject({ text: "a€b", utf8Replaced: false });
  });

  it("replaces and flags what is not UTF-8", () => {
    expect(collect(100, [Buffer.from([0x61, 0xff, 0x62])])).toMatchObject({
      text: "a\ufffdb",
      totalBytes: 3,
      omittedBytes: 0,
      omittedLines: 0,
      utf8Replaced: true,
    });
  });

  it("keeps the text of binary output within the limit, with exact counts", () => {
    for (const size of [100, 1_000, 50_000]) {
      const output = collect(1_000, [randomBytes(size)]);
      expect(Buffer.byteLength(output.text)).toBeLessThanOrEqual(1_000);
      expect(output.totalBytes).toBe(size);
      expect(output.utf8Replaced).toBe(true);
    }
    const invalid = collect(1_000, [Buffer.alloc(5_000, 0xff)]);
    expect(invalid.text.length).toBeGreaterThan(300);
    expect(invalid.totalBytes - invalid.omittedBytes).toBe(invalid.text.length);
  });

  it("counts the lines of binary output that the shortening costs", () => {
    const output = collect(300, [Buffer.from("\xff\n".repeat(500), "latin1")]);
    const kept = output.text.split("\n").length - 1;
    expect(kept + output.omittedLines).toBe(500);
    expect(kept * 2 + output.omittedBytes).toBe(1000);
  });
});
