import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface OpenDescriptor {
  readonly fd: number;
  /** What it stands for: a path, or a word such as "socket:[123]" or "anon_inode:inotify". */
  readonly target: string;
}

/** What a process has open, without what was closed while the list was read. */
export function openDescriptors(pid: number | "self"): OpenDescriptor[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const target = ifOpen(() => readlinkSync(`/proc/${pid}/fd/${fd}`));
    return target === undefined ? [] : [{ fd: Number(fd), target }];
  });
}

/** What the kernel tells of a descriptor, by proc_pid_fdinfo(5); empty when it was closed meanwhile. */
export function descriptorInfo(pid: number | "self", fd: number): string {
  return ifOpen(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1")) ?? "";
}

function ifOpen(read: () => string): string | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
