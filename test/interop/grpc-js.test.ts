import { describeCalls } from "./calls.js";
import { connectGrpcJs } from "./grpc-js-client.js";

describeCalls("grpc-js", connectGrpcJs);
