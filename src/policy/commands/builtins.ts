import { takesOver } from "./variables.js";

interface Objection {
  /** Empty: the builtin as a whole. */
  readonly part: string;
  readonly why: string;
}

/** Arguments as they are known before a run; undefined for those that are not. */
type Arguments = readonly (string | undefined)[];

/** They run nothing, whatever their arguments are. */
const HARMLESS = [":", "true", "false", "cd", "echo", "pwd", "exit", "return", "shift", "break", "continue", "wait", "umask"];
/** Of `set`: none of these makes the shell run or export anything. */
const HARMLESS_OPTIONS = /^(?:[-+][eufxCnvo]+|[-+]o|errexit|nounset|pipefail|noglob|xtrace|noclobber|verbose|noexec)$/;

const BUILTINS = new Set(
  `. alias bg bind builtin caller command compgen complete compopt declare dirs disown enable eval exec export fc fg getopts hash help
  history jobs kill let local logout mapfile popd printf pushd read readarray readonly set shopt source suspend test times trap type
  typeset ulimit unalias unset [`
    .split(/\s+/)
    .concat(HARMLESS),
);

/** Those that are judged by their arguments. */
const JUDGED: Readonly<Record<string, (args: Arguments, mayExport: (name: string) => boolean) => Objection | undefined>> = {
  test: judgeTest,
  "[": judgeTest,
  printf: (args) => {
    const [first] = args;
    const unclear = { part: "-v", why: "it sets a variable that only a run can tell" };
    return first === undefined || first.startsWith("-v") ? unclear : undefined;
  },
  read: (args) => firstOf(args, (name) => judgeVariable(name, /^-[rs]+$/)),
  local: (args) => firstOf(args, (name) => judgeVariable(name)),
  unset: (args) => firstOf(args, (name) => judgeVariable(name, /^-[vf]$/)),
  export: (args, mayExport) =>
    firstOf(args, (argument) => {
      const name = nameOf(argument);
      if (name === undefined || !mayExport(name))
        return { part: argument ?? "…", why: "shell.env does not let it be set for programs" };
      return judgeVariable(argument);
    }),
  set: (args) => {
    const options = args.indexOf("--") < 0 ? args : args.slice(0, args.indexOf("--"));
    return firstOf(options, (option) => {
      return option !== undefined && HARMLESS_OPTIONS.test(option)
        ? undefined
        : { part: option ?? "…", why: "it is not decided here" };
    });
  },
};

/** Whether a shell does that itself. */
export function isBuiltin(name: string): boolean {
  return BUILTINS.has(name);
}

/** Whether that is one of those that a line may use, as far as its arguments go. */
export function isKnownBuiltin(name: string): boolean {
  return HARMLESS.includes(name) || Object.hasOwn(JUDGED, name);
}

/** Judges a builtin that is known. Undefined: nothing is wrong with it. */
export function judgeBuiltin(name: string, args: Arguments, mayExport: (name: string) => boolean): Objection | undefined {
  return JUDGED[name]?.(args, mayExport);
}

/** `-v` looks at a variable, whose subscript may be a command. What is not known before a run may be one. */
function judgeTest(args: Arguments): Objection | undefined {
  return args.includes("-v") ? { part: "-v", why: "it evaluates what it tests" } : undefined;
}

function judgeVariable(argument: string | undefined, options?: RegExp): Objection | undefined {
  if (argument !== undefined && options?.test(argument)) return undefined;
  const name = nameOf(argument);
  if (name === undefined) return { part: argument ?? "…", why: "it names a variable that is not decided here" };
  return takesOver(name) ? { part: name, why: "setting it changes what commands do" } : undefined;
}

/** `NAME` or `NAME=value`. */
function nameOf(argument: string | undefined): string | undefined {
  return /^([A-Za-z_]\w*)(?:\+?=.*)?$/s.exec(argument ?? "")?.[1];
}

function firstOf(args: Arguments, judge: (argument: string | undefined) => Objection | undefined): Objection | undefined {
  for (const argument of args) {
    const objection = judge(argument);
    if (objection !== undefined) return objection;
  }
  return undefined;
}
