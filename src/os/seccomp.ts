import { constants } from "node:os";
import { CLONE3, DENIED_CALLS, FIRST_UNKNOWN_CALL, RESTRICTED_CALLS, type RestrictedCall } from "./forbidden-calls.js";
import { libc, SYSCALL } from "./libc.js";
import { check } from "./system-error.js";

const SECCOMP_SET_MODE_FILTER = 1;
/** linux/audit.h. */
const AUDIT_ARCH = process.arch === "arm64" ? 0xc00000b7 : 0xc000003e;

/** struct seccomp_data: number, architecture, instruction pointer, then the arguments. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENTS_AT = 16;

/** Classic BPF, linux/filter.h: how many instructions are skipped when a comparison holds, and when it does not. */
type Instruction = readonly [code: number, yes: number, no: number, operand: number];
const INSTRUCTION_BYTES = 8;
const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const ifEqual = (operand: number, yes: number, no: number): Instruction => [0x15, yes, no, operand];
const ifAtLeast = (operand: number, yes: number, no: number): Instruction => [0x35, yes, no, operand];
const ifAnyBit = (operand: number, yes: number, no: number): Instruction => [0x45, yes, no, operand];
const skip = (count: number): Instruction => [0x05, 0, 0, count];
const verdict = (value: number): Instruction => [0x06, 0, 0, value];

const failWith = (errno: number) => verdict(0x0005_0000 | errno);
const DENY = failWith(constants.errno.EPERM);
const NOT_THERE = failWith(constants.errno.ENOSYS);
const ALLOW = verdict(0x7fff_0000);
const KILL_PROCESS = verdict(0x8000_0000);

/**
 * Takes system calls from the calling thread, and from all that it starts from now on, forever: those that no other confinement
 * covers, as prlimit(2) on any process of the same user. It must have given up new privileges before. Other threads keep theirs.
 * @throws the errno of seccomp(2): ENOSYS or EINVAL where the kernel has none.
 */
export function forbidSystemCalls(): void {
  const filter = encode(program());
  const length = filter.byteLength / INSTRUCTION_BYTES;
  check(libc.seccomp(SYSCALL.seccomp, SECCOMP_SET_MODE_FILTER, 0, { length, filter }), "seccomp");
}

function program(): Instruction[] {
  const denied = Object.values(DENIED_CALLS);
  return [
    // A number means another call there: `int 0x80` of a 64-bit program.
    ...[load(ARCHITECTURE_AT), ifEqual(AUDIT_ARCH, 1, 0), KILL_PROCESS],
    ...[load(NUMBER_AT), ifAtLeast(FIRST_UNKNOWN_CALL, 0, 1), NOT_THERE],
    ...[ifEqual(CLONE3, 0, 1), NOT_THERE],
    ...denied.map((number, index) => ifEqual(number, denied.length - index, 0)),
    ...[skip(1), DENY],
    ...Object.values(RESTRICTED_CALLS).flatMap(restricted),
    ALLOW,
  ];
}

function restricted({ number, alternatives }: RestrictedCall): Instruction[] {
  const decide = [...alternatives.flatMap(alternative), DENY];
  return [ifEqual(number, 0, decide.length), ...decide];
}

/** Allows when all tests hold; goes on behind itself otherwise. */
function alternative(tests: RestrictedCall["alternatives"][number]): Instruction[] {
  const decide = tests.flatMap((test, index) => {
    const behind = 2 * (tests.length - index - 1) + 1;
    const compare = "equals" in test ? ifEqual(test.equals, 0, behind) : ifAnyBit(test.without, behind, 0);
    return [load(ARGUMENTS_AT + 4 * test.word), compare];
  });
  return [...decide, ALLOW];
}

function encode(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(instructions.length * INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  instructions.forEach(([code, yes, no, operand], index) => {
    const at = index * INSTRUCTION_BYTES;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, yes);
    view.setUint8(at + 3, no);
    view.setUint32(at + 4, operand, true);
  });
  return bytes;
}
