import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { RpcAnswer, RpcCall, RpcClient } from "./rpc-client.js";

/**
 * A client library of another language, driven through a program of ours: calls go to its standard input, answers come from its
 * standard output, one JSON object a line, bytes as base64. `{"cancel": id}` cancels a call.
 */
export function driveClient(command: string, args: readonly string[]): RpcClient {
  const { PATH = "" } = process.env;
  const child = spawn(command, args, { env: { PATH }, stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const waiting = new Map<number, PromiseWithResolvers<RpcAnswer>>();
  let calls = 0;
  const send = (line: object) => child.stdin.write(`${JSON.stringify(line)}\n`);
  // A program that has ended is noticed below.
  child.stdin.on("error", () => undefined);
  createInterface(child.stdout)
    .on("line", (line) => {
      const { id, responses, status, ...answer } = JSON.parse(line);
      waiting
        .get(id)
        ?.resolve({ ...answer, responses: responses.map(decode), status: status === "" ? undefined : decode(status) });
      waiting.delete(id);
    })
    .on("close", () => {
      for (const { reject } of waiting.values()) reject(new Error(`${command} ended in the middle of a call`));
    });
  return {
    async call({ requests, ...call }: RpcCall, cancelSignal) {
      const id = ++calls;
      const answer = Promise.withResolvers<RpcAnswer>();
      waiting.set(id, answer);
      send({ id, ...call, requests: requests.map((request) => Buffer.from(request).toString("base64")) });
      cancelSignal?.addEventListener("abort", () => send({ cancel: id }), { once: true });
      return answer.promise;
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      const [code, signal] = await exited;
      if (code !== 0) throw new Error(`${command} ended with ${code ?? signal}`);
    },
  };
}

function decode(base64: string): Uint8Array {
  return Buffer.from(base64, "base64");
}
