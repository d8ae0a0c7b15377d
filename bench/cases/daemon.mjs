import { HTTP } from "./figures.mjs";

const RESIDENT = { metric: "residentMib", label: "resident, MiB" };
const ANONYMOUS = { metric: "anonymousMib", label: "anonymous, MiB" };

export const startUp = {
  id: "start-up",
  name: "start-up",
  kind: "start-up",
  protocols: HTTP,
  figures: [{ metric: "p50Ms", label: "to the first answer, ms" }],
  goals: { p50Ms: { value: { max: 50 }, text: "≤ 50 ms" } },
};

export const idleMemory = {
  id: "idle-memory",
  name: "idle memory",
  kind: "memory",
  figures: [RESIDENT, ANONYMOUS],
  goals: {
    residentMib: { value: { max: 60 }, text: "≤ 60 MiB" },
    anonymousMib: { value: { max: 20 }, text: "≤ 20 MiB" },
  },
};

export const memoryAfterExecs = {
  id: "exec-memory",
  name: "memory after the execs",
  kind: "memory",
  figures: [RESIDENT, ANONYMOUS],
  goals: { residentMib: { value: { max: 90 }, text: "≤ 90 MiB" } },
};
