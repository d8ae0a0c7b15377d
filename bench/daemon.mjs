import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { daemonPids } from "./process-stats.mjs";

const START_LIMIT_MS = 10_000;
const STOP_LIMIT_MS = 15_000;
const RETRY_MS = 5;

/**
 * A daemon under test. `command(port)` is `{ argv, env }`; `programs` are the names that its processes have in /proc. What it
 * logs goes to a file, as it would in production to a pipe that somebody reads. `onDispose` gets the function that stops it.
 */
export async function startDaemon({ name, command, programs, directory, protocolFamily, onDispose }) {
  const port = await freePort();
  const logFile = `${directory}/${name}.log`;
  const log = openSync(logFile, "a");
  const { argv, env } = command(port);
  const child = spawn(argv[0], argv.slice(1), { env, stdio: ["ignore", log, log] });
  closeSync(log);
  const exited = once(child, "exit");
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const pids = daemonPids(child.pid, programs);
    child.kill("SIGTERM");
    const forced = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    await exited;
    clearTimeout(forced);
    // Sessions of sshd outlive it until their client has gone.
    for (const pid of pids) if (pid !== child.pid) killIfAlive(pid);
  };
  try {
    onDispose(stop);
    await waitForPort(port, () => child.exitCode ?? child.signalCode);
  } catch (error) {
    await stop();
    throw new Error(`${name} did not start: ${error.message}\n${readFileSync(logFile, "utf8").slice(-2000)}`);
  }
  return { name, protocolFamily, command, address: `127.0.0.1:${port}`, pids: () => daemonPids(child.pid, programs) };
}

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function waitForPort(port, ended) {
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch (error) {
      if (ended() !== null) throw new Error(`it ended with ${ended()}`);
      if (performance.now() > deadline) throw error;
      await delay(RETRY_MS);
    } finally {
      socket.destroy();
    }
  }
}

function killIfAlive(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
