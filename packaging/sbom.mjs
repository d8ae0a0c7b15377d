// The software bill of materials of a package: CycloneDX 1.6, JSON. It has no time but SOURCE_DATE_EPOCH and no random number, so that
// the same package has the same.
import { createHash } from "node:crypto";

/** An expression that is one identifier of SPDX. */
const IDENTIFIER = /^[A-Za-z0-9.+-]+$/;

/**
 * @param contents.bundled npm packages that are bundled, see third-party.mjs
 * @param contents.node, contents.native packages of npm: `{ name, version, license, integrity }`
 * @param contents.debian what debianPackages returns
 */
export function makeSbom({ version, arch, commit }, { bundled, node, native, debian }) {
  const self = {
    type: "application",
    "bom-ref": `picod@${version}`,
    name: "picod",
    version,
    description: "The daemon inside an AI agent's sandbox",
    licenses: licensesOf("Apache-2.0"),
    purl: `pkg:generic/picod@${version}?arch=${arch}&os=linux`,
    properties: commit === "" ? undefined : [{ name: "picod:commit", value: commit }],
  };
  const components = [...bundled.map(npmComponent), npmComponent(native), nodeComponent(node), ...debian.map(debianComponent)];
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { timestamp: new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000).toISOString(), component: self },
    components,
    dependencies: [{ ref: self["bom-ref"], dependsOn: components.map((component) => component["bom-ref"]) }],
  };
  const digest = createHash("sha256").update(JSON.stringify(bom)).digest("hex");
  return `${JSON.stringify({ ...bom, serialNumber: `urn:uuid:${uuidOf(digest)}` }, undefined, 2)}\n`;
}

function npmComponent({ name, version, license, integrity }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const hashes = integrity === undefined ? undefined : [{ alg: "SHA-512", content: sha512Of(integrity) }];
  return { type: "library", "bom-ref": purl, name, version, licenses: licensesOf(license), hashes, purl };
}

/** Its binary comes by way of npm, and is the one of nodejs.org. */
function nodeComponent(node) {
  const purl = `pkg:github/nodejs/node@v${node.version}`;
  return { ...npmComponent(node), type: "platform", "bom-ref": purl, name: "node", purl };
}

function debianComponent({ name, version, architecture, sha256 }) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return { type: "library", "bom-ref": purl, name, version, hashes: [{ alg: "SHA-256", content: sha256 }], purl };
}

function licensesOf(license) {
  return IDENTIFIER.test(license) ? [{ license: { id: license } }] : [{ expression: license }];
}

function sha512Of(integrity) {
  return Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
}

/** RFC 9562, version 8. */
function uuidOf(hex) {
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)];
  return parts.join("-");
}
