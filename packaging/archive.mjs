import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { run } from "./run.mjs";

/** A folder as .tar.gz: the same bytes for the same content, whoever makes it, where and when. */
export function makeArchive(parent, name, output) {
  const tar = `${output}.tar`;
  const same = [
    "--sort=name",
    "--format=ustar",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    `--mtime=@${process.env.SOURCE_DATE_EPOCH}`,
  ];
  run("tar", [...same, "--directory", parent, "--create", "--file", tar, name]);
  writeFileSync(output, gzipSync(readFileSync(tar), { level: 9 }));
  rmSync(tar);
}
