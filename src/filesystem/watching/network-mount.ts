import { closeSync, statfsSync } from "node:fs";
import { withFileRightsOf } from "../../os/credentials.js";
import { O_PATH } from "../../os/root.js";
import { withPath } from "../../os/system-error.js";
import type { Access } from "../access.js";

/** NFS, CIFS, SMB, SMB2 and FUSE, statfs(2). What others do there the kernel does not tell. */
const NETWORK = [0x6969, 0xff534d42, 0x517b, 0xfe534d42, 0x65735546];

/** Whether a path leads into a file system that others write too. @throws errno of open(2). */
export function isNetworkMount(access: Access, path: string): boolean {
  const fd = withFileRightsOf(access, () => access.root.open(path, O_PATH));
  try {
    // Signed where the kernel's field is.
    return NETWORK.includes(statfsSync(`/proc/self/fd/${fd}`).type >>> 0);
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(fd);
  }
}
