import type { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { showFileError } from "../files/file-errors.js";
import type { HttpRoute, ShownError } from "../http-route.js";

/** `{"error", "code"}`. @param missing what a 404 says. */
export function agentCubeErrors(missing?: string): Pick<HttpRoute, "showError" | "errorBody"> {
  return {
    showError,
    errorBody: (status, message) => ({ error: status === 404 && missing !== undefined ? missing : message, code: status }),
  };
}

/** A path that leaves the workspace is a bad one, not one that is merely forbidden. */
function showError(failure: ConnectError): ShownError {
  const [info] = failure.findDetails(ErrorInfoSchema);
  return info?.reason === "OUTSIDE_ROOT" ? { status: 400, codeText: "INVALID_ARGUMENT" } : showFileError(failure);
}
