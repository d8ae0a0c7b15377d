import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { domainToASCII } from "node:url";

/** What everybody may be asked for: of HTTP and HTTPS. */
const HTTPS_PORT = 443;
const USUAL_PORTS = [80, HTTPS_PORT];

/** Where a request wants to go. `host` has no brackets. */
export interface Destination {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, `[address]:port`, or without the port. Undefined when it is neither. */
export function parseDestination(text: string, defaultPort: number): Destination | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([\da-fA-F:.]+)\]|([^:[\]/@\s]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const host = normalize(bracketed ?? plain ?? "");
  return host === "" || port < 1 || port > 65_535 ? undefined : { host, port };
}

/** In the form that is compared: lower case, punycode, no dot behind it, addresses in their one form. Empty: no name of a host. */
function normalize(host: string): string {
  if (host.includes(":")) return isIP(host) === 6 ? new URL(`http://[${host}]`).hostname.slice(1, -1) : "";
  // Also makes an address of 0x7f.1 and the like.
  const ascii = domainToASCII(host.replace(/\.$/, ""));
  return /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(ascii) ? ascii : "";
}

/** Whether that may stand in `allowed_domains`: in lower case, a name, `*.name`, an address, or one of these with a port. */
export function isListable(domain: string): boolean {
  return domain === domain.toLowerCase() && parseEntry(domain.replace(/^\*\./, "")) !== undefined;
}

/** An address of IPv6 needs brackets only for a port. */
function parseEntry(name: string): Destination | undefined {
  return parseDestination(isIP(name) === 6 ? `[${name}]` : name, HTTPS_PORT);
}

/** The names and addresses of `allowed_domains`. */
export class DomainList {
  readonly #entries: readonly { readonly host: string; readonly port: number | undefined; readonly below: boolean }[];

  readonly #ownAddresses: () => readonly string[];

  /** @param ownAddresses those of this machine, whose ports are nobody's but its own. */
  constructor(domains: readonly string[], ownAddresses = addressesOfThisMachine) {
    this.#ownAddresses = ownAddresses;
    this.#entries = domains.flatMap((domain) => {
      const below = domain.startsWith("*.");
      const name = below ? domain.slice(2) : domain;
      const destination = parseEntry(name);
      if (destination === undefined) return [];
      const port = isIP(name) !== 6 && /:\d+$/.test(name) ? destination.port : undefined;
      return [{ host: destination.host, port, below }];
    });
  }

  allows({ host, port }: Destination): boolean {
    return this.#entries.some((entry) => {
      const isNamed = entry.below ? isIP(host) === 0 && host.endsWith(`.${entry.host}`) : host === entry.host;
      return isNamed && (entry.port === undefined ? USUAL_PORTS.includes(port) : entry.port === port);
    });
  }

  /** Whether a name may lead there: to the public internet, this machine left out, or to what is listed itself, with its port. */
  allowsAddress(address: string, port: number): boolean {
    const host = normalize(toPlainAddress(address.replace(/%.*$/, "")));
    const isPublic = !isReserved(host) && !this.#ownAddresses().some((own) => normalize(own) === host);
    return isPublic || this.allows({ host, port });
  }
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address));
}

const reserved = createReserved();

function isReserved(address: string): boolean {
  return reserved.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** IPv4 addresses that are written as IPv6 ones. */
function toPlainAddress(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

/** All that is not the public internet: IANA's registries of special-purpose addresses, metadata services among them. */
function createReserved(): BlockList {
  const list = new BlockList();
  const ipv4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
  ].concat(
    ["192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"],
    // Alibaba's and Azure's, outside of them.
    ["100.100.100.200/32", "168.63.129.16/32"],
  );
  const ipv6 = [
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
  ].concat(["3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"]);
  for (const [family, subnets] of [["ipv4", ipv4] as const, ["ipv6", ipv6] as const]) {
    for (const subnet of subnets) {
      const [address = "", prefix] = subnet.split("/");
      list.addSubnet(address, Number(prefix), family);
    }
  }
  return list;
}
