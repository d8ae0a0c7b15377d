// Adds to package-lock.json the optional packages of other platforms that npm left out because the registry at hand does not carry
// them: "npm ci" insists that they are named, though it never installs them on this platform. Run after changing dependencies.
import { readFileSync, writeFileSync } from "node:fs";

const PLATFORM = /-(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)-([a-z0-9_]+)/;
const NODE_NAME_OF_CPU = { armv7: "arm" };

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const [, os, cpu] = PLATFORM.exec(name) ?? [];
    if (os === undefined) continue;
    lock.packages[`node_modules/${name}`] ??= {
      version,
      cpu: [NODE_NAME_OF_CPU[cpu] ?? cpu],
      dev: entry.dev,
      optional: true,
      os: [os],
    };
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
