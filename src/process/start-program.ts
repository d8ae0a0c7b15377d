import { closeSync } from "node:fs";
import { InputWriter, writeAndClose } from "../os/input-writer.js";
import type { OutputReader } from "../os/output-reader.js";
import { closePipe, createPipe, type Pipe } from "../os/pipe.js";
import { spawn } from "../os/spawn.js";
import { openTerminal, type TerminalSize } from "../os/terminal.js";
import type { User } from "../os/users.js";
import type { StreamName } from "./managed-process.js";

/** Everything is resolved and checked: this starts as it is. */
export interface ProcessSpec {
  readonly id: string;
  readonly file: string;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
  readonly io: ProcessIo;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly killGraceMs: number;
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
  return spec.io.kind === "terminal" ? startOnTerminal(spec, spec.io.size) : startOnPipes(spec, spec.io.input, devNull);
}

function startOnTerminal(spec: ProcessSpec, size: TerminalSize): StartedProgram {
  const { masterFd, slaveFd, path } = openTerminal(spec.user, size);
  try {
    const pid = spawn({ ...spec, stdio: path });
    const connectInput = (terminal: OutputReader | undefined) =>
      terminal === undefined ? undefined : new InputWriter(terminal.input);
    return { pid, outputs: [["pty", masterFd]], masterFd, slaveFd, connectInput };
  } catch (error) {
    closeSync(masterFd);
    closeSync(slaveFd);
    throw error;
  }
}

function startOnPipes(spec: ProcessSpec, input: Uint8Array | "open", devNull: number): StartedProgram {
  const pipes: Pipe[] = [];
  const pipe = () => {
    const created = createPipe(spec.user);
    pipes.push(created);
    return created;
  };
  try {
    const stdout = pipe();
    const stderr = pipe();
    const stdin = input.length > 0 ? pipe() : undefined;
    const pid = spawn({ ...spec, stdio: [stdin?.readFd ?? devNull, stdout.writeFd, stderr.writeFd] });
    for (const fd of [stdout.writeFd, stderr.writeFd, stdin?.readFd]) if (fd !== undefined) closeSync(fd);
    const connectInput = () => {
      if (stdin === undefined) return undefined;
      return input === "open" ? InputWriter.toPipe(stdin.writeFd) : writeAndClose(stdin.writeFd, input);
    };
    return {
      pid,
      outputs: [
        ["stdout", stdout.readFd],
        ["stderr", stderr.readFd],
      ],
      masterFd: undefined,
      slaveFd: undefined,
      connectInput,
    };
  } catch (error) {
    for (const each of pipes) closePipe(each);
    throw error;
  }
}
