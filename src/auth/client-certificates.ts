import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/** The names of a certificate, in order; or why it does not count. */
export type CertificateNames = readonly string[] | { readonly why: string };

interface Shown {
  readonly names: CertificateNames | undefined;
  /** Of the certificate, in milliseconds since 1970. */
  readonly expiresAtMs: number;
}

const KIND_OF_PREFIX: ReadonlyMap<string, string> = new Map([
  ["URI", "uri"],
  ["DNS", "dns"],
  ["email", "email"],
]);

/** What clients have shown when their TLS connections were made; looked at once a connection. */
export class ClientCertificates {
  readonly #shown = new WeakMap<Duplex, Shown>();

  /** Undefined: it has shown none, or there is no TLS. */
  namesOf(socket: Duplex): CertificateNames | undefined {
    const known = this.#shown.get(socket);
    const shown = known ?? tryLookAt(socket as TLSSocket);
    if (known === undefined) this.#shown.set(socket, shown);
    if (shown.names === undefined || Date.now() < shown.expiresAtMs) return shown.names;
    return { why: `it expired at ${new Date(shown.expiresAtMs).toISOString()}` };
  }
}

/** Of a certificate that somebody trusted has issued, and that is odd all the same. */
const UNREADABLE: Shown = { names: { why: "it cannot be read" }, expiresAtMs: Number.POSITIVE_INFINITY };

/** No request may end the process, whatever its certificate holds. */
function tryLookAt(socket: TLSSocket): Shown {
  try {
    return lookAt(socket);
  } catch {
    return UNREADABLE;
  }
}

function lookAt(socket: TLSSocket): Shown {
  const certificate = socket.encrypted ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return { names: undefined, expiresAtMs: Number.POSITIVE_INFINITY };
  const expiresAtMs = Date.parse(certificate.validTo);
  if (!socket.authorized) {
    const { authorizationError: why } = socket;
    return {
      names: { why: String((why as Error | undefined)?.message ?? why ?? "it was not verified") },
      expiresAtMs: Number.POSITIVE_INFINITY,
    };
  }
  const { CN: commonName } = certificate.toLegacyObject().subject as { CN?: string | string[] };
  // With several there is no telling which was meant.
  const cn = typeof commonName === "string" && commonName !== "" ? [`cn:${commonName}`] : [];
  return { names: [...subjectAltNames(certificate.subjectAltName ?? ""), ...cn], expiresAtMs };
}

/**
 * The names in what Node makes of the extension: `URI:spiffe://a/b, DNS:"with, comma"`. A value with characters that could be mistaken for
 * the next name comes as a string of JSON (CVE-2021-44532). Kinds that nobody is named by, IP addresses among them, are left out.
 */
export function subjectAltNames(text: string): string[] {
  const names: string[] = [];
  for (const [, kind = "", quoted, plain = ""] of text.matchAll(
    /([A-Za-z][A-Za-z ]*):(?:("(?:[^"\\]|\\.)*")|([^",]*))(?:, |$)/gy,
  )) {
    const prefix = KIND_OF_PREFIX.get(kind);
    if (prefix !== undefined) names.push(`${prefix}:${quoted === undefined ? plain : String(JSON.parse(quoted))}`);
  }
  return names;
}
