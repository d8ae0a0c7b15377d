import { resolve } from "node:path";
import { openAuditFiles } from "../audit/open-audit-files.js";
import { type Verdict, verifyChain } from "../audit/verify-chain.js";
import { ConfigError } from "../auth/token.js";

export interface AuditVerifyFlags {
  /** Hashes that lines must have. */
  readonly expect: readonly string[];
  /** Whether the first line of all must be there. */
  readonly complete: boolean;
  readonly json: boolean;
}

const EXIT_BAD = 1;

/** Prints what is wrong with the lines of an audit log, if anything is. Returns the exit code: 0 or 1. @throws ConfigError for files that cannot be read. */
export function auditVerify(
  paths: readonly string[],
  { expect, complete, json }: AuditVerifyFlags,
  print: (text: string) => void,
): number {
  const verdict = readable(() =>
    verifyChain(
      paths.flatMap((path) => openAuditFiles(resolve(path))),
      expect,
    ),
  );
  const faults = faultsOf(verdict, complete);
  const { lines, firstSeq, head, bad } = verdict;
  if (json) {
    const firstBad = bad === undefined ? null : { file: bad.file, line: bad.line, why: bad.why };
    print(`${JSON.stringify({ ok: faults.length === 0, lines, firstSeq, head, firstBad, faults })}\n`);
  } else if (faults.length > 0) {
    print(faults.map((fault) => `${fault}\n`).join(""));
  } else {
    print(head === undefined ? "ok: no lines\n" : `ok: ${lines} lines, numbers ${firstSeq} to ${head.seq}, head ${head.hash}\n`);
  }
  return faults.length === 0 ? 0 : EXIT_BAD;
}

function faultsOf({ firstSeq, bad, missing }: Verdict, complete: boolean): string[] {
  return [
    ...(complete && firstSeq !== 1 ? [`the beginning is missing: the first line is number ${firstSeq ?? "none"}`] : []),
    ...(bad === undefined ? [] : [`${bad.file}:${bad.line}: the line ${bad.why}`]),
    ...missing.map(
      (hash) =>
        `no line${bad === undefined ? "" : " before that"} has the hash ${hash}: the end was cut off, or all was made anew`,
    ),
  ];
}

function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ConfigError(`cannot read the audit log: ${(error as Error).message}`, { cause: error });
  }
}
