import { createSecureContext, createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";
import { ConfigError } from "../auth/token.js";
import { readConfigFile } from "../config-file.js";
import { TLS_HANDSHAKE_TIMEOUT_MS } from "./limits.js";

const MAX_FILE_BYTES = 1024 * 1024;
/** A list grows with what was revoked. */
const MAX_CRL_BYTES = 16 * 1024 * 1024;
const ALPN_PROTOCOLS = ["h2", "http/1.1"];

/** What a TLS connection is made with; all of it PEM. */
export interface TlsFiles {
  readonly certPath: string;
  readonly keyPath: string;
  /** Of those who issue client certificates; undefined: no client is asked for one. */
  readonly clientCaPath: string | undefined;
  /** Which of those certificates were revoked; undefined: nobody looks. */
  readonly clientCrlPath: string | undefined;
}

export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
  readonly crl: readonly string[] | undefined;
  /** Others than owner and group can read the key. */
  readonly worldReadable: boolean;
}

/** @throws ConfigError naming the files and why they cannot be used, together or alone. */
export function readTlsMaterial({ certPath, keyPath, clientCaPath, clientCrlPath }: TlsFiles): TlsMaterial {
  const cert = readConfigFile(certPath, "the TLS certificate", MAX_FILE_BYTES).text;
  const { text: key, worldReadable } = readConfigFile(keyPath, "the TLS key", MAX_FILE_BYTES);
  const ca = clientCaPath === undefined ? undefined : readConfigFile(clientCaPath, "the TLS client CA", MAX_FILE_BYTES).text;
  const crl = clientCrlPath === undefined ? undefined : readRevocationLists(clientCrlPath);
  const material = { cert, key, ca, crl, worldReadable };
  try {
    createSecureContext(contextOf(material));
  } catch (error) {
    const files = [certPath, keyPath, clientCaPath, clientCrlPath].filter((path) => path !== undefined).join(", ");
    throw new ConfigError(`cannot use the TLS files ${files}: ${(error as Error).message}`, { cause: error });
  }
  if (ca !== undefined && !ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ConfigError(`cannot use the TLS client CA ${clientCaPath}: it holds no certificate in PEM`);
  }
  return material;
}

/** Node takes one in each text. */
function readRevocationLists(path: string): string[] {
  const { text } = readConfigFile(path, "the TLS client CRL", MAX_CRL_BYTES);
  const lists = text.match(/-----BEGIN X509 CRL-----.*?-----END X509 CRL-----/gs);
  if (lists === null) throw new ConfigError(`cannot use the TLS client CRL ${path}: it holds no revocation list in PEM`);
  return lists;
}

/** TLS in front of every address; what it is made with may be replaced while connections are open. */
export class Tls {
  readonly #servers = new Set<Server>();
  #material: TlsMaterial;

  constructor(material: TlsMaterial) {
    this.#material = material;
  }

  /** From the next handshake on. Connections that are open stay as they are. */
  replace(material: TlsMaterial): void {
    this.#material = material;
    for (const server of this.#servers) server.setSecureContext(contextOf(material));
  }

  /**
   * What makes a TLS connection of one that was accepted, given to it as a `connection`; it does not listen itself.
   *
   * Whoever shows no certificate, or one that does not count, gets a connection all the same: probes have none, and an answer tells
   * more about what is wrong than an alert. The gate looks at what was shown.
   */
  createServer(onSecure: (socket: TLSSocket) => void, onError: (error: Error) => void): Server {
    const { ca } = this.#material;
    const options: TlsOptions = {
      ...contextOf(this.#material),
      ALPNProtocols: ALPN_PROTOCOLS,
      handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS,
      requestCert: ca !== undefined,
      rejectUnauthorized: false,
    };
    const server = createServer(options, onSecure);
    server.on("tlsClientError", (error, socket) => {
      onError(error);
      socket.destroy();
    });
    this.#servers.add(server);
    return server;
  }
}

function contextOf({ cert, key, ca, crl }: TlsMaterial) {
  const clients = { ...(ca === undefined ? {} : { ca }), ...(crl === undefined ? {} : { crl: [...crl] }) };
  return { cert, key, minVersion: "TLSv1.2" as const, ...clients };
}
