import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describeCalls } from "./calls.js";
import { driveClient } from "./driven-client.js";

const CACHE = join(import.meta.dirname, "../../node_modules/.cache/picod-conformance");
const program = join(CACHE, "go-clients");

mkdirSync(CACHE, { recursive: true });
execFileSync("go", ["build", "-o", program, "."], { cwd: join(import.meta.dirname, "go"), stdio: "inherit" });

describeCalls("grpc-go", (address) => driveClient(program, ["grpc-go", address]));
describeCalls("connect-go, gRPC", (address) => driveClient(program, ["grpc", address]));
describeCalls("connect-go, gRPC-Web", (address) => driveClient(program, ["grpc-web", address]));
describeCalls("connect-go, Connect", (address) => driveClient(program, ["connect", address]));
