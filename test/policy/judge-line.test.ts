import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeLine, judgeWords, type LineRules } from "../../src/policy/commands/judge-line.js";

const ALLOWED = ["git", "ls", "/usr/bin/make"];
const PROGRAMS = [...ALLOWED, "cat", "id", "env", "xargs", "find", "awk", "sh", "bash", "make"];
const RULES: LineRules = {
  isAllowed: (name) => ALLOWED.includes(name) || name === "make",
  isProgram: (name) => PROGRAMS.includes(name),
  isShell: (name) => ["sh", "bash", "/bin/sh", "/bin/bash"].includes(name),
  mayExport: (name) => name === "CI" || name.startsWith("GIT_AUTHOR_"),
};

/** Lines in which nothing but what is allowed would run. */
const HARMLESS = [
  "ls",
  "ls -la; git status && make || true",
  "cd sub && git log | ls > out.txt 2>&1 &",
  "'git' status",
  '"ls" "a b"',
  "l\\s -a",
  "if [ -f x ]; then git add x; else echo no; fi",
  "for f in *.ts; do git add $f; done",
  "while read -r line; do echo $line; done < x",
  'x=$(git rev-parse HEAD); echo "$x"',
  "ls <(git log)",
  "echo `git log`",
  "CI=1 make all",
  "export CI=1; make",
  "set -euo pipefail; git fetch",
  "(cd a; ls) ; { ls; }",
  "case $x in a) ls;; *) git log;; esac",
  "ls <<EOF\nid\nEOF",
  "ls; # id",
  "echo $((1 + 2))",
  "sh -c 'ls; git log'",
  "bash -lc ls",
  "/bin/bash -l -c 'sh -c ls'",
  "hello() { ls; }; hello",
  "printf '%s\\n' a $b",
  "git log --format='$(id)'",
  "echo '; id'",
  "! ls",
  "time ls",
  "[[ $x == a* && -n $y ]] && ls",
  "ls /usr/bin/{cat,id}",
  "git --exec-path=/tmp log",
] as const;

/** Lines that would run something else, or that only running them could decide; with the part that says so. */
const DENIED: readonly (readonly [line: string, part: RegExp])[] = [
  ["id", /^id$/],
  ["ls; id", /^id$/],
  ["ls\nid", /^id$/],
  ["ls & id", /^id$/],
  ["ls | id", /^id$/],
  ["ls || id", /^id$/],
  ["ls $(id)", /^id$/],
  ["ls `id`", /^id$/],
  ['ls "$(id)"', /^id$/],
  ['echo "`id`"', /^id$/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["ls ${x:-$(id)}", /^id$/],
  ["ls <(id)", /^id$/],
  ["ls > >(id)", /^id$/],
  ["ls <<EOF\n$(id)\nEOF", /^id$/],
  ["ls <<< $(id)", /^id$/],
  ["x=$(id)", /^id$/],
  ["x=(a $(id))", /^id$/],
  ["for x in $(id); do ls; done", /^id$/],
  ["case $(id) in *) ls;; esac", /^id$/],
  ["[[ -n $(id) ]]", /^id$/],
  ["echo $(( $(id) ))", /^id$/],
  ["if id; then ls; fi", /^id$/],
  ["while id; do ls; done", /^id$/],
  ["(id)", /^id$/],
  ["{ id; }", /^id$/],
  ["! id", /^id$/],
  ["time id", /^id$/],
  ["coproc id", /coproc/],
  ["f() { id; }; f", /^id$/],
  ["function f { id; }", /^id$/],
  ["sh -c id", /^id$/],
  ["sh -c 'sh -c id'", /^id$/],
  ["sh -c 'sh -c \"sh -c id\"'", /^id$/],
  ['sh -c "$x"', /^sh$/],
  ["sh script", /^sh$/],
  ["sh -ec id", /^sh$/],
  ["sh", /^sh$/],
  ["ls | sh", /^sh$/],
  ["bash <<EOF\nid\nEOF", /^bash$/],
  ["bash --rcfile x -ic ls", /^bash$/],
  ["eval id", /^eval/],
  ["eval 'ls'", /^eval/],
  ["source x", /^source/],
  [". x", /^\./],
  ["exec ls", /^exec/],
  ["command id", /^command/],
  ["builtin eval id", /^builtin/],
  ["trap id EXIT", /^trap/],
  ["alias ls=id", /^alias/],
  ["enable -f x y", /^enable/],
  ["hash -p /bin/id ls", /^hash/],
  ["mapfile -C id x", /^mapfile/],
  ["complete -C id x", /^complete/],
  ["shopt -s expand_aliases", /^shopt/],
  ["set -a; GIT_SSH_COMMAND=id; git fetch", /^set -a/],
  ["set -o allexport", /^set allexport/],
  ["declare -x LD_PRELOAD=x", /^declare|LD_PRELOAD/],
  ["env id", /^env$/],
  ["env -S 'id'", /^env$/],
  ["xargs id", /^xargs$/],
  ["find . -exec id {} +", /^find$/],
  ["awk 'BEGIN{system(\"id\")}'", /^awk$/],
  ["$x", /^\$x$/],
  ["$x ls", /^\$x$/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["${x}ls", /^\$\{x\}ls$/],
  ["$(echo id)", /\$\(echo id\)/],
  ["i''d", /^id$/],
  ["i\\d", /^id$/],
  ["$'\\x69\\x64'", /^\$'/],
  ["$'ls'", /^\$'/],
  ['$"ls"', /^\$"/],
  ["l?", /^l\?$/],
  ["/usr/bin/i*", /^\/usr\/bin\/i\*$/],
  ["/usr/bin/i[d]", /i\[d\]/],
  ["{id,ls}", /\{id,ls\}/],
  ["{ls,}", /\{ls,\}/],
  ["~/ls", /^~/],
  ["./ls", /^\.\/ls$/],
  ["../bin/ls", /ls$/],
  ["LS", /^LS$/],
  ["Git status", /^Git$/],
  ["gіt status", /^gіt$/],
  ["ｌｓ", /^ｌｓ$/],
  ["ls\u00a0-a", /ls\u00a0-a/],
  ["git\u200b status", /^git\u200b$/],
  ["PATH=/tmp ls", /^PATH$/],
  ["PATH=/tmp; ls", /^PATH$/],
  ["export PATH=/tmp", /^(?:export )?PATH/],
  ["read PATH", /^read PATH$/],
  ["printf -v PATH x", /^printf -v$/],
  ["printf $x PATH y", /^printf/],
  ["local PATH=x", /^local PATH$/],
  ["unset PATH", /^unset PATH$/],
  ["for PATH in /tmp; do ls; done", /^PATH$/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["echo ${PATH:=/tmp}", /^PATH$/],
  ["ls {PATH}> x", /^PATH$/],
  ["LD_PRELOAD=x ls", /^LD_PRELOAD$/],
  ["LD_LIBRARY_PATH=x git log", /^LD_LIBRARY_PATH$/],
  ["BASH_ENV=x ls", /^BASH_ENV$/],
  ["ENV=x ls", /^ENV$/],
  ["IFS=x", /^IFS$/],
  ["PS4='$(id)'; set -x; ls", /^PS4$/],
  ["SHELLOPTS=x ls", /^SHELLOPTS$/],
  ["BASH_FUNC_ls%%='() { id; }' ls", /BASH_FUNC/],
  ["GIT_SSH_COMMAND=id git fetch", /^GIT_SSH_COMMAND$/],
  ["export GIT_SSH_COMMAND=id; git fetch", /GIT_SSH_COMMAND/],
  ["HOME=/tmp; git log", /^HOME$/],
  ["http_proxy=; git fetch", /^http_proxy$/],
  ["ls() { id; }; ls", /^(?:ls|id)$/],
  ["git() { :; }", /^git$/],
  ["cd() { :; }", /^cd$/],
  ["cat() { :; }; cat x", /^cat$/],
  ["cat /etc/shadow; cat() { :; }", /^cat$/],
  ["x='a[$(id)]'; echo $((x))", /^x$/],
  ["((x=1))", /./],
  ["[[ a -eq $x ]]", /./],
  ["[[ -v x ]]", /-v/],
  ["test -v 'a[$(id)]'", /-v/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["echo ${!x}", /./],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["echo ${x@P}", /./],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["echo ${x:$y}", /./],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell that expands it.
  ["echo ${a[$x]}", /./],
  ["a[$x]=1", /./],
  ["ls )", /./],
  ["if ls", /./],
  ["echo 'unfinished", /./],
  ["echo $(id", /./],
  ["ls \0 id", /./],
];

describe("a line", () => {
  it.each(HARMLESS)("may be %s", (line) => {
    expect(judgeLine(line, RULES)).toBeUndefined();
  });

  it.each(DENIED)("may not be %s", (line, part) => {
    expect(judgeLine(line, RULES)?.part).toMatch(part);
  });

  it("that is very deep or long is judged, or refused, and not a fault", () => {
    for (const line of ["$(".repeat(3_000), "(".repeat(20_000), `${"{ ".repeat(5_000)}ls`, "`".repeat(5_001)]) {
      expect(judgeLine(line, RULES)).toBeDefined();
    }
    expect(judgeLine("ls; ".repeat(10_000), RULES)).toBeUndefined();
  });

  it("does not come to run another program by what is put around it", () => {
    const forbidden = fc.constantFrom<string>("id", "/usr/bin/id", "cat /x", "env ls", "eval ls", "$x", "sh x");
    const wrap = fc.constantFrom<(line: string) => string>(
      (line) => `ls; ${line}`,
      (line) => `${line} | ls`,
      (line) => `ls && ${line}`,
      (line) => `( ${line} )`,
      (line) => `{ ${line}\n}`,
      (line) => `if ls; then ${line}\nfi`,
      (line) => `for i in 1; do ${line}\ndone`,
      (line) => `echo "$( ${line} )"`,
      (line) => `case x in x) ${line}\n;; esac`,
      (line) => `sh -c '${line.replaceAll("'", "'\\''")}'`,
      (line) => `x=$(${line}\n) ls`,
      (line) => `ls <( ${line} )`,
      (line) => `! ${line}`,
      (line) => `ls <<E\n$( ${line} )\nE\n`,
    );
    const lines = fc.tuple(forbidden, fc.array(wrap, { maxLength: 4 }));
    fc.assert(
      fc.property(lines, ([inner, wraps]) => {
        const line = wraps.reduce<string>((text, around) => around(text), inner);
        return judgeLine(line, RULES) !== undefined;
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a program with its arguments", () => {
  it("is judged by its name, and a shell by its line", () => {
    expect(judgeWords(["ls", "$(id)"], RULES)).toBeUndefined();
    expect(judgeWords(["/bin/bash", "-l", "-c", "ls"], RULES)).toBeUndefined();
    expect(judgeWords(["/bin/bash", "-l", "-c", "id"], RULES)).toMatchObject({ part: "id" });
    expect(judgeWords(["/bin/bash", "-i"], RULES)).toMatchObject({ part: "/bin/bash" });
    expect(judgeWords(["id"], RULES)).toMatchObject({ part: "id" });
    expect(judgeWords([], RULES)).toBeDefined();
  });
});
