import { closeSync } from "node:fs";
import { InputWriter, writeAndClose } from "../os/input-writer.js";
import type { OutputReader } from "../os/output-reader.js";
import { closePipe, createPipe, type Pipe } from "../os/pipe.js";
import { type SpawnOptions, spawn, spawnOffLoop } from "../os/spawn.js";
import { openTerminal, type TerminalSize } from "../os/terminal.js";
import type { User } from "../os/users.js";
import type { Capability } from "../policy/capability.js";
import type { Spawner } from "../policy/confinement.js";
import type { StreamName } from "./managed-process.js";
import type { Grace } from "./termination.js";

/** Everything is resolved and checked: this starts as it is. */
export interface ProcessSpec {
  readonly id: string;
  readonly file: string;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
  /** Starts it; undefined: this thread. */
  readonly spawner: Spawner | undefined;
  /** With which it was started. */
  readonly capability: Capability | undefined;
  readonly io: ProcessIo;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly killGraceMs: number;
  /** When its time is up; default: `killGraceMs`. */
  readonly timeoutGrace?: Grace;
  /** It has not ended while somebody else holds its output open, unless it was signalled, stopped or timed out. */
  readonly untilOutputEnds?: boolean;
  readonly softOpenFiles: number;
}

/** What the program has as 0, 1 and 2. With pipes, input is all of it now, or open until it is closed. */
export type ProcessIo =
  | { readonly kind: "pipes"; readonly input: Uint8Array | "open" }
  | { readonly kind: "terminal"; readonly size: TerminalSize };

export interface StartedProgram {
  readonly pid: number;
  /** The daemon's ends. */
  readonly outputs: readonly [StreamName, number][];
  readonly masterFd: number | undefined;
  /** To be closed when the program has ended. */
  readonly slaveFd: number | undefined;
  /** Begins writing the input; to be called once, with the reader of the terminal if there is one. */
  connectInput(terminal: OutputReader | undefined): InputWriter | undefined;
}

/** @throws the errno of execve(2), of changing directory, or of making pipes or a terminal; then nothing is left behind. */
export function startProgram(spec: ProcessSpec, devNull: number): StartedProgram {
  if (spec.io.kind === "terminal") return startOnTerminal(spec, spec.io.size);
  const pipes = new ProgramPipes(spec.user, spec.io.input);
  try {
    return pipes.connect(spawnAs(spec, pipes.stdio(devNull)));
  } catch (error) {
    pipes.close();
    throw error;
  }
}

/** The same without stopping the event loop; undefined where that cannot be. */
export function startProgramOffLoop(spec: ProcessSpec, devNull: number): Promise<StartedProgram> | undefined {
  if (spec.io.kind === "terminal" || spec.spawner !== undefined) return undefined;
  const pipes = new ProgramPipes(spec.user, spec.io.input);
  let pid: Promise<number> | undefined;
  try {
    pid = spawnOffLoop({ ...spec, stdio: pipes.stdio(devNull) });
  } finally {
    if (pid === undefined) pipes.close();
  }
  return pid?.then(
    (started) => pipes.connect(started),
    (error) => {
      pipes.close();
      throw error;
    },
  );
}

function startOnTerminal(spec: ProcessSpec, size: TerminalSize): StartedProgram {
  const { masterFd, slaveFd, path } = openTerminal(spec.user, size);
  try {
    const pid = spawnAs(spec, path);
    const connectInput = (terminal: OutputReader | undefined) =>
      terminal === undefined ? undefined : new InputWriter(terminal.input);
    return { pid, outputs: [["pty", masterFd]], masterFd, slaveFd, connectInput };
  } catch (error) {
    closeSync(masterFd);
    closeSync(slaveFd);
    throw error;
  }
}

function spawnAs({ spawner, file, argv, env, cwd, user, softOpenFiles }: ProcessSpec, stdio: SpawnOptions["stdio"]): number {
  const options = { file, argv, env, cwd, user, softOpenFiles, stdio };
  return spawner === undefined ? spawn(options) : spawner.spawn(options);
}

/** The pipes of one program, made before it and shared out after. */
class ProgramPipes {
  readonly #input: Uint8Array | "open";
  readonly #made: Pipe[] = [];
  readonly #stdout: Pipe;
  readonly #stderr: Pipe;
  readonly #stdin: Pipe | undefined;

  /** @throws EMFILE, ENFILE; then none is left. */
  constructor(user: User, input: Uint8Array | "open") {
    this.#input = input;
    const make = () => {
      const pipe = createPipe(user);
      this.#made.push(pipe);
      return pipe;
    };
    try {
      this.#stdout = make();
      this.#stderr = make();
      this.#stdin = input.length > 0 ? make() : undefined;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** What the program has as 0, 1 and 2. */
  stdio(devNull: number): [stdin: number, stdout: number, stderr: number] {
    return [this.#stdin?.readFd ?? devNull, this.#stdout.writeFd, this.#stderr.writeFd];
  }

  /** The program has its ends: these are closed here. */
  connect(pid: number): StartedProgram {
    const [input, stdin] = [this.#input, this.#stdin];
    for (const fd of [this.#stdout.writeFd, this.#stderr.writeFd, stdin?.readFd]) if (fd !== undefined) closeSync(fd);
    const connectInput = () => {
      if (stdin === undefined) return undefined;
      return input === "open" ? InputWriter.toPipe(stdin.writeFd) : writeAndClose(stdin.writeFd, input);
    };
    return {
      pid,
      outputs: [
        ["stdout", this.#stdout.readFd],
        ["stderr", this.#stderr.readFd],
      ],
      masterFd: undefined,
      slaveFd: undefined,
      connectInput,
    };
  }

  /** When there is no program. */
  close(): void {
    for (const pipe of this.#made) closePipe(pipe);
  }
}
