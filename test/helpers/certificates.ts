import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate and its key, as files and as PEM. */
export interface Certificate {
  readonly certPath: string;
  readonly keyPath: string;
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** "/CN=name" */
  readonly subject?: string;
  /** "DNS:localhost,IP:127.0.0.1"; undefined: none. */
  readonly names?: string;
  /** Who signs it; undefined: it signs itself and is an authority. */
  readonly issuer?: Certificate;
  readonly usage?: "serverAuth" | "clientAuth";
  /** It ended yesterday. */
  readonly expired?: boolean;
}

/** Makes a certificate in a directory with openssl. */
export function makeCertificate(directory: string, name: string, options: CertificateOptions = {}): Certificate {
  const { subject = `/CN=${name}`, names, issuer, usage, expired = false } = options;
  const [certPath, keyPath] = [join(directory, `${name}.pem`), join(directory, `${name}.key`)];
  const config = join(directory, `${name}.cnf`);
  const extensions = [
    `basicConstraints=critical,CA:${issuer === undefined}`,
    ...(names === undefined ? [] : [`subjectAltName=${names}`]),
    ...(usage === undefined ? [] : [`extendedKeyUsage=${usage}`]),
  ];
  writeFileSync(config, `[req]\ndistinguished_name=dn\n[dn]\n[ext]\n${extensions.join("\n")}\n`);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });
  openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", keyPath);
  openssl("req", "-new", "-key", keyPath, "-subj", subject, "-config", config, "-out", `${certPath}.csr`);
  const signer =
    issuer === undefined ? ["-signkey", keyPath] : ["-CA", issuer.certPath, "-CAkey", issuer.keyPath, "-CAcreateserial"];
  const extended = ["-extfile", config, "-extensions", "ext", "-days", expired ? "-1" : "2"];
  openssl("x509", "-req", "-in", `${certPath}.csr`, ...signer, ...extended, "-out", certPath);
  return { certPath, keyPath, cert: readFileSync(certPath, "utf8"), key: readFileSync(keyPath, "utf8") };
}

/** Makes the revocation list of an authority with openssl. @param expired whether the next one was due long ago. Returns it as PEM. */
export function makeRevocationList(
  directory: string,
  issuer: Certificate,
  revoked: readonly Certificate[],
  { expired = false } = {},
): string {
  const base = mkdtempSync(join(directory, "crl-"));
  const [config, database, list] = [join(base, "ca.cnf"), join(base, "index.txt"), join(base, "crl.pem")];
  writeFileSync(database, "");
  writeFileSync(config, `[ca]\ndefault_ca=own\n[own]\ndatabase=${database}\ndefault_md=sha256\n`);
  const openssl = (...args: string[]) => {
    const authority = ["-config", config, "-cert", issuer.certPath, "-keyfile", issuer.keyPath];
    execFileSync("openssl", ["ca", ...authority, ...args], { stdio: "pipe" });
  };
  for (const { certPath } of revoked) openssl("-revoke", certPath);
  const until = expired ? ["-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"] : ["-crldays", "2"];
  openssl("-gencrl", ...until, "-out", list);
  return readFileSync(list, "utf8");
}
