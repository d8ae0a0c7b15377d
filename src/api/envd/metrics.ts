import { readFileSync, statfsSync } from "node:fs";
import { cpus } from "node:os";

const MIB = 1024 * 1024;

interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}

/** What the machine has and uses, as E2B's clients are shown it. */
export class MachineMetrics {
  #last = cpuTimes();

  /** Processor use is that since the call before. */
  read(): object {
    const now = cpuTimes();
    const all = now.all - this.#last.all;
    const used = all > 0 ? ((now.busy - this.#last.busy) / all) * 100 : 0;
    this.#last = now;
    const memory = readMemory();
    const { blocks, bavail, bsize } = statfsSync("/");
    return {
      ts: Math.floor(Date.now() / 1000),
      cpu_count: cpus().length,
      cpu_used_pct: Math.round(used * 100) / 100,
      mem_total: memory.total,
      mem_used: memory.used,
      mem_cache: memory.cache,
      mem_total_mib: Math.floor(memory.total / MIB),
      mem_used_mib: Math.floor(memory.used / MIB),
      disk_used: (blocks - bavail) * bsize,
      disk_total: blocks * bsize,
    };
  }
}

function cpuTimes(): CpuTimes {
  const times = cpus().map((cpu) => cpu.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { all, busy: all - times.reduce((sum, { idle }) => sum + idle, 0) };
}

/** Bytes. */
function readMemory(): { total: number; used: number; cache: number } {
  const text = readFileSync("/proc/meminfo", "latin1");
  const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  const total = bytes("MemTotal");
  const cache = bytes("Cached") + bytes("SReclaimable");
  return { total, used: total - bytes("MemFree") - bytes("Buffers") - cache, cache };
}
