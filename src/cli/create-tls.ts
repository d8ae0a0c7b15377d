import { X509Certificate } from "node:crypto";
import type { Config } from "../config.js";
import { versionOf, WATCH_INTERVAL_MS, watchConfigFiles } from "../config-file.js";
import type { Logger } from "../logger.js";
import { readTlsMaterial, Tls, type TlsMaterial } from "../server/tls.js";

/** Undefined: the port speaks cleartext. The files are read again when they change. @throws ConfigError for files that cannot be used. */
export function createTls({ tlsCert, tlsKey, tlsClientCa, tlsClientCrl }: Config, logger: Logger): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const files = { certPath: tlsCert, keyPath: tlsKey, clientCaPath: tlsClientCa, clientCrlPath: tlsClientCrl };
  const paths = [tlsCert, tlsKey, tlsClientCa, tlsClientCrl].filter((path) => path !== undefined);
  const version = versionOf(paths);
  const read = () => {
    const material = readTlsMaterial(files);
    if (material.worldReadable) logger.warn(`the TLS key ${tlsKey} is readable by every user of the sandbox: chmod 600 it`);
    return material;
  };
  const material = read();
  const tls = new Tls(material);
  logger.info(describe(material), "TLS certificate loaded");
  watchConfigFiles(paths, version, WATCH_INTERVAL_MS, () => {
    try {
      const changed = read();
      tls.replace(changed);
      logger.info(describe(changed), "TLS certificate loaded");
    } catch (error) {
      logger.error({ err: error }, "cannot use the changed TLS files; the present ones stay in force");
    }
  });
  return tls;
}

function describe({ cert }: TlsMaterial): object {
  const { subject, subjectAltName, validTo, fingerprint256 } = new X509Certificate(cert);
  return { subject, subjectAltName, validTo, fingerprint256 };
}
