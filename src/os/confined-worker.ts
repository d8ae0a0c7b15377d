import { fstatSync, openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { limitCapabilitiesOfChildren } from "./capabilities.js";
import { ANSWER, type ConfinedThreadData, type ConfinedThreadMessage, MESSAGE_OFFSET } from "./confined-thread.js";
import { confineThread, landlockAbi, type PathRule } from "./landlock.js";
import { makeRestReadOnly } from "./mount-namespace.js";
import { enterNetwork, enterNewNetwork, listenOnLoopback } from "./network-namespace.js";
import { forbidSystemCalls } from "./seccomp.js";
import { type SpawnOptions, spawnHere } from "./spawn.js";

/** Entry of a thread that confines itself and then starts programs for the main thread, which waits for each. */
function main(data: ConfinedThreadData): void {
  if (parentPort === null) throw new Error("not a worker thread");
  const answer = new Int32Array(data.answer);
  const reply = (step: () => void) => {
    answer[ANSWER.errno] = 0;
    answer[ANSWER.messageBytes] = 0;
    try {
      step();
    } catch (error) {
      const { errno = 0, message } = error as NodeJS.ErrnoException;
      answer[ANSWER.errno] = -errno;
      const bytes = new Uint8Array(data.answer, MESSAGE_OFFSET);
      answer[ANSWER.messageBytes] = new TextEncoder().encodeInto(message, bytes).written;
    }
    Atomics.add(answer, ANSWER.count, 1);
    Atomics.notify(answer, ANSWER.count);
  };
  let nullFd = -1;
  /** The daemon's own was opened where everything may be written: by it a command could change the mode of the machine's /dev/null. */
  const withOwnNull = (stdio: SpawnOptions["stdio"]): SpawnOptions["stdio"] => {
    if (typeof stdio === "string" || fstatSync(stdio[0]).rdev !== fstatSync(nullFd).rdev) return stdio;
    return [nullFd, stdio[1], stdio[2]];
  };
  parentPort.on("message", (message: ConfinedThreadMessage) => {
    reply(() => {
      if ("rules" in message) confine(message.rules, data.isRoot);
      else answer[ANSWER.pid] = spawnHere({ ...message, stdio: withOwnNull(message.stdio) });
    });
  });
  reply(() => {
    const { network, writable } = data;
    if (network?.kind === "join") enterNetwork(network.fd);
    if (network?.kind === "new") {
      answer[ANSWER.networkFd] = enterNewNetwork();
      answer[ANSWER.listenFd] = network.listenPort === undefined ? -1 : listenOnLoopback(network.listenPort);
    }
    if (writable !== undefined) answer[ANSWER.isReadOnly] = makeRestReadOnly(writable) ? 1 : 0;
    nullFd = openSync("/dev/null", "r");
  });
}

function confine(rules: readonly PathRule[], isRoot: boolean): void {
  if (isRoot) limitCapabilitiesOfChildren();
  confineThread(rules, landlockAbi());
  forbidSystemCalls();
}

main(workerData);
