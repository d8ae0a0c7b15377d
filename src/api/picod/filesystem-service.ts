import type { ServiceImpl } from "@connectrpc/connect";
import type { FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import type { Readiness } from "../../readiness.js";
import type { Sandbox } from "../../sandbox.js";
import { createArchiveMethods } from "./archive-methods.js";
import { createDirectoryMethods } from "./directory-methods.js";
import { createFileMethods } from "./file-methods.js";
import { createFindMethods } from "./find-methods.js";
import { createMoveMethods } from "./move-methods.js";
import { createSignedUrlMethods } from "./signed-url-methods.js";
import { createUploadMethods } from "./upload-methods.js";
import { createWatchMethods } from "./watch-methods.js";

/** picod.v1.FilesystemService: translates and delegates, in groups of methods. */
export function createFilesystemService(sandbox: Sandbox, readiness: Readiness): ServiceImpl<typeof FilesystemService> {
  return {
    ...createFileMethods(sandbox),
    ...createUploadMethods(sandbox),
    ...createDirectoryMethods(sandbox),
    ...createMoveMethods(sandbox),
    ...createFindMethods(sandbox),
    ...createArchiveMethods(sandbox),
    ...createWatchMethods(sandbox, readiness),
    ...createSignedUrlMethods(sandbox),
  };
}
