import { startDaemon } from "./daemon.mjs";

/** The client's own grpc-go server: what a plain one reaches on this machine. */
export function startYardstick(clientPath, directory, onDispose) {
  const command = (port) => ({
    argv: [clientPath, "yardstick", "-address", `127.0.0.1:${port}`],
    env: { PATH: process.env.PATH },
  });
  return startDaemon({ name: "grpc-go", command, programs: [], directory, protocolFamily: "grpc-go", onDispose });
}
