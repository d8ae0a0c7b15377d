import { describe, expect, it } from "vitest";
import type { ProcessEnd } from "../../src/process/managed-process.js";
import type { StartedFrom } from "../../src/process/process-record.js";
import { ProcessRegistry } from "../../src/process/process-registry.js";
import { eventually } from "../helpers/eventually.js";

const FROM: StartedFrom = {
  command: "true",
  argv: [],
  cwd: "",
  user: "",
  env: {},
  size: undefined,
  stdin: false,
  login: false,
  timeoutMs: 0,
  limits: {},
  owner: undefined,
  version: undefined,
};
const END: ProcessEnd = {
  reason: "exited",
  exitCode: 0,
  signal: undefined,
  forced: false,
  survivingProcesses: 0,
  durationMs: 1,
  usage: { userTimeMs: 0, systemTimeMs: 0, maxRssBytes: 0 },
  message: "",
};
const RETENTION = { retainMs: 60_000, maxRecords: 1000, maxOutputBytes: 1024 * 1024, maxStreamBytes: 64 * 1024 };

function add(registry: ProcessRegistry, id: string, outputBytes = 0, tag = "") {
  const record = registry.create(id, FROM, { tag, label: "", sessionId: "" }, { cwd: "/", userName: "root" }, undefined);
  registry.add(record);
  if (outputBytes > 0) record.push("stdout", Buffer.alloc(outputBytes));
  return record;
}

const ids = (registry: ProcessRegistry) => registry.list(undefined).map(({ id }) => id);

describe("an ended process", () => {
  it("is forgotten when its time is over, and watchers are told", async () => {
    const registry = new ProcessRegistry({ ...RETENTION, retainMs: 20 });
    const events: string[] = [];
    registry.watch(({ kind, record }) => events.push(`${kind} ${record.id}`));
    const running = add(registry, "running");
    registry.ended(add(registry, "ended"), END);
    await eventually("it is forgotten", () => !registry.has("ended"));
    expect(ids(registry)).toEqual([running.id]);
    expect(events).toEqual(["started running", "started ended", "ended ended", "deleted ended"]);
    registry.close();
  });

  it("makes room for others in the order in which they ended, never one that runs", () => {
    const registry = new ProcessRegistry({ ...RETENTION, maxRecords: 3 });
    const records = Array.from({ length: 6 }, (_, index) => add(registry, `p${index}`));
    for (const index of [3, 1, 4, 0, 5]) registry.ended(records[index] ?? add(registry, "none"), END);
    expect(ids(registry)).toEqual(["p0", "p2", "p4", "p5"]);
    registry.close();
  });

  it("makes room when the output of all takes too much", () => {
    const registry = new ProcessRegistry(RETENTION);
    for (let index = 0; index < 20; index++) registry.ended(add(registry, `p${index}`, 64 * 1024), END);
    expect(ids(registry)).toEqual(Array.from({ length: 8 }, (_, index) => `p${index + 12}`));
    expect(registry.list(undefined).reduce((sum, { keptBytes }) => sum + keptBytes, 0)).toBe(512 * 1024);
    registry.close();
  });
});

describe("a tag", () => {
  it("finds the process that lives, else the one that ended last and is still kept", () => {
    const registry = new ProcessRegistry(RETENTION);
    const found = (tag: string) => registry.find({ tag }, undefined).id;
    const [first, second] = [add(registry, "first", 0, "web"), add(registry, "other", 0, "db")];
    expect(() => add(registry, "second", 0, "web")).toThrow("tag web is in use by process first");
    registry.ended(first, END);
    expect(found("web")).toBe("first");
    registry.update(second, "web", undefined, undefined);
    expect(found("web")).toBe("other");
    expect(() => found("db")).toThrow("no such process: tag db");
    registry.ended(second, END);
    expect(found("web")).toBe("other");
    registry.delete(second);
    expect(found("web")).toBe("first");
    registry.update(first, "", undefined, undefined);
    expect(() => found("web")).toThrow("no such process: tag web");
    registry.close();
  });
});
