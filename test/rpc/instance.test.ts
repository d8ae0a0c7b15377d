import { existsSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { connectTo, PROTOCOLS } from "../helpers/clients.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "./support/http1.js";
import { errorOf, followToEnd } from "./support/processes.js";

const HEADER = "x-picod-instance";
const bearer = { authorization: `Bearer ${TOKEN}` };

describe("the run of the daemon", () => {
  it("is named by every answer, refusals included, and is another one after a restart", async () => {
    const seen = new Set<unknown>();
    for (const _ of [1, 2]) {
      await using daemon = await startDaemon();
      const { headers, body } = await ask(daemon, "/health");
      expect(JSON.parse(body)).toMatchObject({ instance: headers[HEADER] });
      for (const answer of [
        await ask(daemon, "/v1/processes"),
        await ask(daemon, "/v1/processes", { headers: bearer }),
        await ask(daemon, "/none", { headers: bearer }),
        await ask(daemon, "/picod.v1.ProcessService/Execute", { method: "POST", headers: bearer }),
      ]) {
        expect(answer.headers[HEADER], String(answer.status)).toBe(headers[HEADER]);
      }
      for (const protocol of PROTOCOLS) {
        await using clients = connectTo(daemon.url, { protocol });
        let named: string | null = "";
        const onHeader = (header: Headers) => {
          named = header.get(HEADER);
        };
        await clients.process.execute({ command: "true" }, { onHeader });
        expect(named, protocol).toBe(headers[HEADER]);
        const failed = await errorOf(clients.filesystem.stat({ path: "/none" }));
        expect(failed.metadata.get(HEADER), protocol).toBe(headers[HEADER]);
      }
      seen.add(headers[HEADER]);
    }
    expect(seen.size).toBe(2);
  });

  it.each(PROTOCOLS)("refuses what is meant for another one, before anything runs (%s)", async (protocol) => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    const command = `touch ${directory.path}/ran`;
    const other = { headers: { [HEADER]: "another" } };
    for (const error of [
      await errorOf(clients.process.execute({ command }, other)),
      await errorOf(followToEnd(clients.process.start({ command }, other))),
    ]) {
      expect(error.code).toBe(Code.Aborted);
      expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "INSTANCE_CHANGED", domain: "picod" }]);
      const named = error.metadata.get(HEADER);
      await expect(clients.process.execute({ command: "true" }, { headers: { [HEADER]: named ?? "" } })).resolves.toMatchObject({
        exitCode: 0,
      });
    }
    expect(existsSync(`${directory.path}/ran`)).toBe(false);
  });

  it("refuses over plain HTTP too, and tells nothing of it to who has no token", async () => {
    await using daemon = await startDaemon();
    const headers = { ...bearer, [HEADER]: "another" };
    const { status, body } = await ask(daemon, "/v1/processes", { headers });
    expect([status, JSON.parse(body)]).toMatchObject([409, { code: "aborted", reason: "INSTANCE_CHANGED" }]);
    await expect(ask(daemon, "/v1/processes", { headers: { [HEADER]: "another" } })).resolves.toMatchObject({ status: 401 });
    await using strangers = connectTo(daemon.url, { token: null });
    const refused = ConnectError.from(
      await errorOf(strangers.process.execute({ command: "true" }, { headers: { [HEADER]: "x" } })),
    );
    expect(refused.code).toBe(Code.Unauthenticated);
  });
});
