import { describe, expect, it } from "vitest";
import { DomainList, parseDestination } from "../../src/policy/network/domain-list.js";

const LIST = new DomainList([
  "pypi.org",
  "*.github.com",
  "bücher.example",
  "registry.local:8080",
  "10.1.2.3",
  "[::1]:9000",
  "2001:db8::7",
]);

function allows(text: string, defaultPort = 443): boolean {
  const destination = parseDestination(text, defaultPort);
  return destination !== undefined && LIST.allows(destination);
}

describe("a list of domains", () => {
  it.each([
    "pypi.org",
    "pypi.org:443",
    "pypi.org:80",
    "PyPI.org.",
    "api.github.com",
    "a.b.github.com",
    "xn--bcher-kva.example",
    "BÜCHER.example",
    "registry.local:8080",
    "10.1.2.3",
    "0x0a.1.2.3",
    "[::1]:9000",
    "[0:0:0:0:0:0:0:1]:9000",
    "[2001:db8::7]:443",
  ])("allows %s", (text) => expect(allows(text)).toBe(true));

  it.each([
    "github.com",
    "evil-github.com",
    "github.com.evil.org",
    "pypi.org.evil.org",
    "xpypi.org",
    "pypi.org:22",
    "pypi.org:0",
    "pypi.org:65536",
    "registry.local",
    "registry.local:443",
    "files.pypi.org",
    "рypi.org",
    "pypi。org.evil.org",
    "127.0.0.1",
    "2130706433",
    "[::1]",
    "10.1.2.4",
    "[::ffff:10.1.2.4]:443",
    "1.github.com@evil.org",
    "pypi.org\r\nhost: x",
    "pypi.org/..",
    "pypi.org ",
    "*.github.com",
    "",
    ":443",
    "[pypi.org]:443",
    "..",
    "pypi.org..",
  ])("does not allow %j", (text) => expect(allows(text)).toBe(false));

  it("takes the ideographic full stop for what resolvers take it", () => {
    expect(parseDestination("pypi。org", 443)).toEqual({ host: "pypi.org", port: 443 });
  });

  it.each([
    "127.0.0.1",
    "10.0.0.1",
    "172.16.5.5",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
  ])("lets no name lead to %s", (address) => expect(LIST.allowsAddress(address, 443)).toBe(false));

  it.each([
    "::1",
    "::",
    "fe80::1",
    "fd00:ec2::254",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::ffff:0:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "ff02::1",
  ])("lets no name lead to %s", (address) => expect(new DomainList(["a.org"]).allowsAddress(address, 443)).toBe(false));

  it("lets names lead to an address that is listed with a port by that port alone", () => {
    const list = new DomainList(["*.example.org", "10.0.0.5:5000", "10.0.0.6", "[fd00::5]:5000"]);
    const allowed = (address: string) => [80, 443, 5000].filter((port) => list.allowsAddress(address, port));
    expect(["10.0.0.5", "::ffff:10.0.0.5", "10.0.0.6", "fd00:0::5"].map(allowed)).toEqual([[5000], [5000], [80, 443], [5000]]);
  });

  it("lets no name lead to this machine, unless that is listed", () => {
    const own = () => ["8.8.4.4", "2606:4700:0::1111"];
    const list = new DomainList(["a.org"], own);
    const addresses = ["8.8.4.4", "::ffff:8.8.4.4", "2606:4700::1111", "8.8.8.8"];
    expect(addresses.map((address) => list.allowsAddress(address, 443))).toEqual([false, false, false, true]);
    const listing = new DomainList(["a.org", "8.8.4.4:443"], own);
    expect([443, 80].map((port) => listing.allowsAddress("8.8.4.4", port))).toEqual([true, false]);
  });

  it("lets names lead to public addresses, and to those that are listed", () => {
    expect(["1.1.1.1", "2606:4700::1111", "10.1.2.3", "2001:db8::7"].map((address) => LIST.allowsAddress(address, 443))).toEqual(
      Array.from({ length: 4 }, () => true),
    );
  });
});
