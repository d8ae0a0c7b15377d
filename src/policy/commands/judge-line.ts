import type { Assignment, Command, ParameterExpansionPart, SyntaxNode, TestBinaryExpression, Word, WordPart } from "unbash";
import { forEachChild, parse } from "unbash";
import { isBuiltin, isKnownBuiltin, judgeBuiltin } from "./builtins.js";
import { takesOver } from "./variables.js";

/** What a line may do. */
export interface LineRules {
  /** Whether that program may be run, as it is called. */
  isAllowed(name: string): boolean;
  /** Whether there is a program of that name at all. */
  isProgram(name: string): boolean;
  /** Whether that is a shell, whose own `-c` is judged like a line. */
  isShell(name: string): boolean;
  /** Whether programs may get a variable of that name from the line. */
  mayExport(name: string): boolean;
}

/** Why a line is not run: the part of it, and what is wrong with that. */
export interface Objection {
  readonly part: string;
  readonly why: string;
}

/** Lines in lines: `sh -c "sh -c …"`. */
const MAX_NESTING = 8;

/**
 * Judges a line for bash or a POSIX shell by what it would execute: every command in it, those of substitutions included, is allowed,
 * and nothing is left that only running it could decide. Undefined: nothing is wrong with it.
 */
export function judgeLine(line: string, rules: LineRules, nesting = 0): Objection | undefined {
  if (nesting > MAX_NESTING) return { part: line, why: "lines in lines are too deep" };
  // A shell ends its line there, and the parser does not.
  if (line.includes("\0")) return { part: line, why: "it holds a NUL byte" };
  const judge = new LineJudge(line, rules, nesting);
  judge.visit(parse(line));
  return judge.objection;
}

/** Judges a program with its arguments. @param words undefined for one that only running it could tell. */
export function judgeWords(words: readonly (string | undefined)[], rules: LineRules, nesting = 0): Objection | undefined {
  const [name = "", ...args] = words;
  if (rules.isAllowed(name)) return undefined;
  const line = rules.isShell(name) ? lineOf(args) : undefined;
  if (line !== undefined) return judgeLine(line, rules, nesting + 1);
  return { part: name, why: "allowed_commands does not have it" };
}

/** The line of `sh -c LINE`; undefined for all other ways to call a shell. */
function lineOf(args: readonly (string | undefined)[]): string | undefined {
  const [first, ...rest] = args;
  if (first === "-l" || first === "--login") return lineOf(rest);
  return first === "-c" || first === "-lc" ? rest[0] : undefined;
}

class LineJudge {
  objection: Objection | undefined;
  readonly #line: string;
  readonly #rules: LineRules;
  readonly #nesting: number;
  readonly #functions = new Set<string>();

  constructor(line: string, rules: LineRules, nesting: number) {
    this.#line = line;
    this.#rules = rules;
    this.#nesting = nesting;
  }

  visit(node: SyntaxNode): void {
    this.objection ??= this.#judge(node);
    // Looked at only while nothing is wrong: what is lazy in the tree may be deep.
    if (this.objection === undefined) forEachChild(node, (child) => this.visit(child));
  }

  #judge(node: SyntaxNode): Objection | undefined {
    switch (node.type) {
      case "Script":
        return node.errors?.map(({ message }) => object(this.#line, `it is no shell line: ${message}`))[0];
      case "Command":
        return this.#judgeCommand(node);
      case "Assignment":
        // A subscript is arithmetic.
        if (node.index !== undefined && !/^\d+$/.test(node.index.text))
          return object(node.text, "a subscript evaluates what it holds");
        return this.#judgeName(node.name, node);
      case "Function":
        return this.#judgeFunction(node.name);
      case "Coproc":
        return object(this.#text(node), "coproc is not decided here");
      case "For":
      case "Select":
        return this.#judgeName(node.name.value, node.name);
      case "FileDescriptorVariable":
        return this.#judgeName(node.name, node);
      case "ParameterExpansion":
        return this.#judgeExpansion(node);
      case "ArithmeticWord":
        if (/^[\d\s]*$/.test(node.value)) return undefined;
        return object(node.value, "arithmetic evaluates the values of variables, commands in them included");
      case "ArithmeticCommand":
      case "ArithmeticExpansion":
        return node.expression === undefined ? object(this.#text(node), "arithmetic that is not decided here") : undefined;
      case "TestUnary":
        return ["-v", "-R"].includes(node.operator) ? object(node.operator, "it evaluates what it tests") : undefined;
      case "TestBinary":
        return this.#judgeTest(node);
      case "CommandExpansion":
      case "ProcessSubstitution":
        return node.script === undefined ? object(node.text, "a substitution that is not decided here") : undefined;
      default:
        return undefined;
    }
  }

  #judgeCommand(command: Command): Objection | undefined {
    if (command.name === undefined) return undefined;
    const name = literal(command.name);
    if (name === undefined || name === "" || command.name.text.startsWith("~")) {
      return object(command.name.text, "what is run here is known only when it runs");
    }
    for (const part of command.prefix) {
      const objection = part.type === "Assignment" ? this.#judgeExport(part.name) : undefined;
      if (objection !== undefined) return objection;
    }
    const words = command.suffix.filter((part) => part.type === "Word" || part.type === "Assignment");
    const args = words.map((part) => (part.type === "Word" ? literal(part) : textOf(part)));
    if (isKnownBuiltin(name)) {
      const objection = judgeBuiltin(name, args, (variable) => this.#rules.mayExport(variable));
      return objection && object(`${name}${objection.part === "" ? "" : ` ${objection.part}`}`, objection.why);
    }
    if (isBuiltin(name)) return object(name, "the shell would do there what is not decided here");
    return this.#functions.has(name) ? undefined : judgeWords([name, ...args], this.#rules, this.#nesting);
  }

  #judgeFunction(word: Word): Objection | undefined {
    const name = literal(word);
    if (name === undefined || isBuiltin(name) || isKnownBuiltin(name) || name.includes("/") || this.#rules.isProgram(name)) {
      return object(word.text, "a function of the name of something else");
    }
    this.#functions.add(name);
    return undefined;
  }

  #judgeName(name: string, node: { readonly pos: number; readonly end: number }): Objection | undefined {
    if (!/^[A-Za-z_]\w*$/.test(name)) return object(this.#text(node), "an assignment that is not decided here");
    if (takesOver(name)) return object(name, "setting it changes what commands do");
    return isInherited(name) ? this.#judgeExport(name) : undefined;
  }

  #judgeExport(name: string): Objection | undefined {
    return this.#rules.mayExport(name) ? undefined : object(name, "shell.env does not let it be set for programs");
  }

  #judgeExpansion({ prefix, operation, parameter, index, text }: ParameterExpansionPart): Objection | undefined {
    if (prefix === "!") return object(text, "it expands what only a run can tell");
    // A subscript is arithmetic.
    if (index !== undefined && !/^(?:[@*]|\d+)$/.test(index.text)) return object(text, "a subscript evaluates what it holds");
    if (operation?.type === "Transform" || operation?.type === "Unknown") return object(text, "it is not decided here");
    if (operation?.type === "Slice") {
      const unclear = [operation.offset, operation.length].find((word) => word !== undefined && !/^\s*-?\d*\s*$/.test(word.text));
      if (unclear !== undefined) return object(text, "its place is arithmetic, which evaluates what it holds");
    }
    if (operation?.type !== "Default" || !operation.operator.endsWith("=")) return undefined;
    if (takesOver(parameter)) return object(parameter, "setting it changes what commands do");
    return isInherited(parameter) ? this.#judgeExport(parameter) : undefined;
  }

  #judgeTest({ operator, left, right }: TestBinaryExpression): Objection | undefined {
    if (!/^-(?:eq|ne|lt|le|gt|ge)$/.test(operator)) return undefined;
    const unclear = [left, right].find((word) => !/^-?\d+$/.test(literal(word) ?? ""));
    return unclear && object(unclear.text, `[[ … ${operator} … ]] evaluates it; use [ … ]`);
  }

  #text({ pos, end }: { readonly pos: number; readonly end: number }): string {
    return this.#line.slice(pos, end);
  }
}

function object(part: string, why: string): Objection {
  return { part, why };
}

/** Its text when nothing in it depends on a run: quotes are taken off, and there is no expansion, glob or brace in it. */
function literal(word: Word): string | undefined {
  const isPlain = (part: WordPart): boolean =>
    part.type === "Literal" || part.type === "SingleQuoted" || (part.type === "DoubleQuoted" && part.parts.every(isPlain));
  return word.parts === undefined || word.parts.every(isPlain) ? word.value : undefined;
}

/** `NAME=value` of `export` and the like, with what follows the sign left out: only the name is judged. */
function textOf({ name, index, append }: Assignment): string {
  return `${name}${index === undefined ? "" : "[]"}${append ? "+" : ""}=`;
}

/** Variables that are in the environment of every command, so that setting one in the shell hands it to programs. */
function isInherited(name: string): boolean {
  return /^(HOME|USER|LOGNAME|SHELL|LANG|TERM|PWD|OLDPWD|TRACE(PARENT|STATE)|((HTTPS?|ALL|NO)_PROXY)|((https?|all|no)_proxy))$/.test(
    name,
  );
}
