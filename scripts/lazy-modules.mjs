// Plugins of esbuild for what is not needed before the daemon's first answer, and often never: it is loaded when it is used for the
// first time. Exports become getters for it, each of which makes way for what it has made.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, relative, resolve as resolvePath } from "node:path";
import { transform } from "esbuild";

const NAMESPACE = "lazy";
/** Of Node: those that its servers need as well are loaded in any case. */
const BUILTINS = [
  "assert",
  "child_process",
  "dns/promises",
  "fs/promises",
  "https",
  "module",
  "perf_hooks",
  "v8",
  "worker_threads",
  "zlib",
];
const require = createRequire(import.meta.url);

const DEFINE = `
function define(name, make) {
  Object.defineProperty(exports, name, {
    configurable: true,
    enumerable: true,
    get() {
      const value = make();
      Object.defineProperty(exports, name, { value });
      return value;
    },
  });
}
`;

/** Modules of Node. */
export const lazyBuiltins = {
  name: "lazy-builtins",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: new RegExp(`^(node:)?(${BUILTINS.join("|")})$`) }, ({ path, importer, namespace }) => {
      if (namespace === NAMESPACE && importer === path) return { path, external: true };
      return { path: path.replace(/^(node:)?/, "node:"), namespace: NAMESPACE, sideEffects: false };
    });
    onLoad({ filter: /^node:/, namespace: NAMESPACE }, ({ path }) => {
      const names = JSON.stringify(Object.keys(require(path)));
      return { contents: `for (const name of ${names}) define(name, () => require("${path}")[name]);${DEFINE}`, loader: "js" };
    });
  },
};

/** Of packages: prom-client's client of a gateway, metrics of clusters and those of Node; pino's threads that write logs. */
export const lazyParts = {
  name: "lazy-parts",
  setup({ onLoad }) {
    onLoad({ filter: /\/(prom-client\/index|pino\/pino|pino\/lib\/tools)\.js$/ }, async ({ path }) => {
      const code = await readFile(path, "utf8");
      const lazy = code
        .replace(/^exports\.(\w+) =\s+(require\('[^']+'\)(\.\w+)?);$/gm, 'define("$1", () => $2);')
        .replace(/^module\.exports\.(transport) = (require\('[^']+'\))$/m, 'define("$1", () => $2)')
        .replace(/^const (transport) = (require\('[^']+'\))$/m, "const $1 = (...args) => $2(...args)");
      if (lazy === code) throw new Error(`${path} loads its parts in another way`);
      return { contents: `${lazy}${DEFINE.replaceAll("exports", "module.exports")}`, loader: "js" };
    });
  },
};

/** What protoc-gen-es writes: it describes all messages as soon as it is loaded, which takes more time than all else at the start. */
export const lazyDescriptors = {
  name: "lazy-descriptors",
  setup({ initialOptions: { absWorkingDir }, onLoad, onResolve, resolve }) {
    // Out of its package: what is CommonJS now is in one of ES modules.
    onResolve({ filter: /_pb\.js$/ }, async ({ path, pluginData, ...from }) => {
      if (pluginData === NAMESPACE) return undefined;
      const found = await resolve(path, { ...from, namespace: "file", pluginData: NAMESPACE });
      return { path: relative(absWorkingDir, found.path), namespace: NAMESPACE, sideEffects: false };
    });
    onLoad({ filter: /_pb\.[jt]s$/, namespace: NAMESPACE }, async (found) => {
      const path = resolvePath(absWorkingDir, found.path);
      const { code } = await transform(await readFile(path, "utf8"), { loader: "ts" });
      return { contents: describeLazily(code, path), loader: "js", resolveDir: dirname(path) };
    });
  },
};

/** @param code as esbuild prints it: every export begins a line. */
function describeLazily(code, path) {
  const described = new Set();
  const enums = [];
  const eager = code.replace(/^export (const|var) (\w+)\b/gm, (_, kind, name) => {
    if (kind === "var") enums.push(name);
    else described.add(name);
    return `${kind} ${name}`;
  });
  if (/^export /m.test(eager)) throw new Error(`${path} exports what is neither described nor an enum`);
  const description = /^const (\w+) = (?:\/\* @__PURE__ \*\/ )?((?:\w+Desc|boot)\([\s\S]*?\n?\));$/gm;
  const lazy = eager.replace(description, (statement, name, made) => {
    if (!described.delete(name)) return statement;
    return `define("${name}", () => ${made.replace(/(?<=^\w+\()file_\w+/, "exports.$&")});`;
  });
  if (described.size > 0) throw new Error(`${path} describes in another way: ${[...described].join(", ")}`);
  return `${lazy}${enums.map((name) => `exports.${name} = ${name};\n`).join("")}${DEFINE}`;
}
