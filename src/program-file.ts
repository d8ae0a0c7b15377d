import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What loads the single file of a package, scripts/load.cjs, gives this to the daemon: it holds these files itself. */
declare const readPart: (((name: string) => Buffer) & { readonly nativeLibrary?: string }) | undefined;

/** A file that the build lays beside the daemon. */
export function readProgramFile(name: string): Buffer {
  return typeof readPart === "function" ? readPart(name) : readFileSync(join(__dirname, name));
}

/** Where the packages lie that are not bundled. */
export function programFolder(): string {
  return __dirname;
}

/** The path of koffi's library in a package that brings it by itself; undefined where it is a package in the folder. */
export function nativeLibrary(): string | undefined {
  return typeof readPart === "function" ? readPart.nativeLibrary : undefined;
}
