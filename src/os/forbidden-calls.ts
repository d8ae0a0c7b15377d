/** Where the arguments of a call are held to something: the 32-bit words of them, the lower one of the first being 0. */
export type ArgumentTest =
  | { readonly word: number; readonly equals: number }
  /** None of these bits. */
  | { readonly word: number; readonly without: number };

/** A call that may be made when all tests of one of the alternatives hold. */
export interface RestrictedCall {
  readonly number: number;
  readonly alternatives: readonly (readonly ArgumentTest[])[];
}

const isArm = process.arch === "arm64";
const number = (x64: number, arm64: number) => (isArm ? arm64 : x64);

/** Linux 6.18 knows none from here on, on x64 and arm64: whatever they do, nobody has looked at it. Those of x32 are higher, too. */
export const FIRST_UNKNOWN_CALL = 470;

/** Its flags are in memory, which a filter cannot read; C libraries take `clone` when there is none. */
export const CLONE3 = 435;

/** What reaches other processes, the kernel, or around the filter, and nothing that programs of a sandbox need. */
export const DENIED_CALLS: Readonly<Record<string, number>> = {
  ptrace: number(101, 117),
  process_vm_readv: number(310, 270),
  process_vm_writev: number(311, 271),
  process_madvise: 440,
  process_mrelease: 448,
  move_pages: number(279, 239),
  migrate_pages: number(256, 238),
  kcmp: number(312, 272),
  pidfd_getfd: 438,
  setns: number(308, 268),
  mount: number(165, 40),
  umount2: number(166, 39),
  pivot_root: number(155, 41),
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  mount_setattr: 442,
  open_tree_attr: 467,
  // Its requests are made by the kernel, past any filter.
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  // Keyrings of a user are those of the daemon, too.
  add_key: number(248, 217),
  request_key: number(249, 218),
  keyctl: number(250, 219),
  bpf: number(321, 280),
  perf_event_open: number(298, 241),
  userfaultfd: number(323, 282),
  open_by_handle_at: number(304, 265),
  syslog: number(103, 116),
  kexec_load: number(246, 104),
  kexec_file_load: number(320, 294),
  init_module: number(175, 105),
  finit_module: number(313, 273),
  delete_module: number(176, 106),
};

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NEW_NAMESPACES = 0x7e02_0000;
/** For unshare(2) alone: clone(2) has a signal's number there. */
const CLONE_NEWTIME = 0x80;
const PRIO_PROCESS = 0;
const IOPRIO_WHO_PROCESS = 1;

const ITSELF: ArgumentTest = { word: 0, equals: 0 };
const itself = (which: number): readonly ArgumentTest[] => [
  { word: 0, equals: which },
  { word: 2, equals: 0 },
];

/** Of the caller itself, which is what 0 stands for, and not of any process by its number. */
export const RESTRICTED_CALLS: Readonly<Record<string, RestrictedCall>> = {
  // Without new limits, in the third argument, it only tells.
  prlimit64: {
    number: number(302, 261),
    alternatives: [
      [ITSELF],
      [
        { word: 4, equals: 0 },
        { word: 5, equals: 0 },
      ],
    ],
  },
  sched_setaffinity: { number: number(203, 122), alternatives: [[ITSELF]] },
  sched_setparam: { number: number(142, 118), alternatives: [[ITSELF]] },
  sched_setscheduler: { number: number(144, 119), alternatives: [[ITSELF]] },
  sched_setattr: { number: number(314, 274), alternatives: [[ITSELF]] },
  setpriority: { number: number(141, 140), alternatives: [itself(PRIO_PROCESS)] },
  ioprio_set: { number: number(251, 30), alternatives: [itself(IOPRIO_WHO_PROCESS)] },
  clone: { number: number(56, 220), alternatives: [[{ word: 0, without: NEW_NAMESPACES }]] },
  unshare: { number: number(272, 97), alternatives: [[{ word: 0, without: NEW_NAMESPACES | CLONE_NEWTIME }]] },
};
