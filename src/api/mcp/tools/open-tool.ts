import type { Config } from "../../../config.js";
import { PicodError } from "../../../errors/picod-error.js";
import type { Tool } from "./tool.js";

/** Opens what the other tools work in. */
export function createOpenTool({ imageName }: Pick<Config, "imageName">): Tool {
  return {
    name: "sandbox_open",
    title: "Open the sandbox",
    description:
      "Opens the sandbox session, or returns the one that is open: a working directory for files and commands. The other tools open it by " +
      "themselves; call this to learn the absolute path of the working directory.",
    requires: "any",
    inputSchema: {
      type: "object",
      properties: { image: { type: "string", description: `The image of the sandbox; here it is always ${imageName}.` } },
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string" },
        image: { type: "string" },
        workdir: { type: "string", description: "Absolute path; relative paths begin there." },
        status: { type: "string", enum: ["ready"] },
        created: { type: "boolean", description: "False when the session was open already." },
      },
      required: ["session_id", "image", "workdir", "status", "created"],
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    run({ image = imageName }: { image?: string }, { session, sessionCreated }) {
      if (image !== imageName) {
        const message = `cannot open a sandbox of the image ${image}: this one is ${imageName}, and it makes no others`;
        throw new PicodError("IMAGE_NOT_AVAILABLE", message, { image: imageName });
      }
      const { id, place } = session;
      return {
        structured: { session_id: id, image: imageName, workdir: place.workdir, status: "ready", created: sessionCreated },
      };
    },
  };
}
