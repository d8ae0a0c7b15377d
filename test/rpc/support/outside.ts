import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, lutimesSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What no answer may tell: of a file outside, as no other has it. */
export const SECRET = "CANARY".repeat(1319);

/** Trades a directory and a link that leads out, and two directories at different depths, as fast as it can. */
const SWAPPER = `
import ctypes, os, time
exchange = ctypes.CDLL(None).renameat2
parent = os.getppid()
while os.getppid() == parent:
  exchange(-100, b"swap/inner", -100, b"swap/other", 2)
  exchange(-100, b"swap/deep/a/b", -100, b"swap/b", 2)
  time.sleep(0.0001)
`;

/** A directory to be got out of, `root`, beside one with canaries, `outside`. Both belong to the user who tries. */
export class Outside {
  readonly root: string;
  readonly outside: string;
  readonly #base: string;
  readonly #uid: number;
  readonly #before: string;

  constructor(base: string, uid: number) {
    [this.#base, this.#uid] = [base, uid];
    [this.root, this.outside] = [join(base, "root"), join(base, "outside")];
    mkdirSync(join(this.outside, "canary-directory"), { recursive: true });
    mkdirSync(this.root);
    writeFileSync(join(this.outside, "secret"), SECRET);
    for (const name of [".", "secret", "canary-directory"]) chownSync(join(this.outside, name), uid, uid);
    // So old that the next access shows, however seldom the mount updates times of access.
    lutimesSync(join(this.outside, "secret"), 1000, 2000);
    this.furnish();
    this.#before = this.#traces();
  }

  /** Anew. What is swapped is taken out first: to remove it by its name might remove what is outside. */
  furnish(): void {
    const [fresh, old] = [join(this.#base, "fresh"), join(this.#base, "old")];
    mkdirSync(fresh);
    mkdirSync(old);
    this.#fill(fresh);
    // Names need not be UTF-8.
    for (const [from, to] of [
      [this.root, old],
      [fresh, this.root],
    ])
      execFileSync("find", [
        from as string,
        "-mindepth",
        "1",
        "-maxdepth",
        "1",
        "-exec",
        "mv",
        "-t",
        to as string,
        "--",
        "{}",
        "+",
      ]);
    chownSync(this.root, this.#uid, this.#uid);
    execFileSync("rm", ["-rf", "--", old, fresh]);
  }

  /** Begins to swap, until it is disposed of. */
  async swapping(): Promise<AsyncDisposable> {
    const swapper = spawn("python3", ["-c", SWAPPER], { cwd: this.root, stdio: "ignore" });
    await once(swapper, "spawn");
    return {
      async [Symbol.asyncDispose]() {
        if (swapper.exitCode !== null) throw new Error("the swapper ended");
        swapper.kill("SIGKILL");
        await once(swapper, "exit");
      },
    };
  }

  /** What was there before, and what is there now. */
  compared(): [before: string, now: string] {
    return [this.#before, this.#traces()];
  }

  #fill(directory: string): void {
    const at = (name: string) => join(directory, name);
    for (const name of ["swap/inner/deep", "swap/deep/a/b/c/d", "swap/b", "proc/self", "dev", "inner/deep", "listing"])
      mkdirSync(at(name), { recursive: true });
    for (const name of ["file", "inner/file", "swap/inner/file", "swap/inner/deep/file", "swap/inner/secret", "listing/file"])
      writeFileSync(at(name), "inside");
    const links: [name: string, target: string][] = [
      ["swap/other", this.outside],
      ["absolute", this.outside],
      ["upwards", `${"../".repeat(40)}${this.outside}`],
      ["chain", "inner/next"],
      ["inner/next", "../upwards"],
      ["circle", "circle"],
      ["through-proc", `/proc/self/root${this.outside}`],
      ["proc/self/root", "/"],
      ["proc/self/cwd", ".."],
      ["new", `${this.outside}/new`],
    ];
    for (const [name, target] of links) symlinkSync(target, at(name));
    execFileSync("chown", ["-R", "-h", `${this.#uid}`, directory]);
  }

  /** All that reading, changing or adding leaves there. */
  #traces(): string {
    const names = [".", ...readdirSync(this.outside, { recursive: true, encoding: "utf8" }).toSorted()];
    const lines = names.map((name) => {
      const { ino, mode, uid, gid, nlink, size, atimeNs, mtimeNs, ctimeNs } = statSync(join(this.outside, name), {
        bigint: true,
      });
      return [name, ino, mode, uid, gid, nlink, size, name === "secret" ? atimeNs : "", mtimeNs, ctimeNs].join(" ");
    });
    return [...lines, ...readdirSync(this.#base).toSorted()].join("\n");
  }

  /** To be read only in the end, for reading shows. */
  get secret(): string {
    return readFileSync(join(this.outside, "secret"), "utf8");
  }
}
