import { readFile } from "node:fs/promises";
import { dirname, relative, resolve as resolvePath } from "node:path";
import { transform } from "esbuild";

const NAMESPACE = "lazy";

/**
 * For esbuild: what protoc-gen-es writes describes its messages as soon as it is loaded, which takes more time than all else at the start
 * of the daemon, and most of it is never used. Here each description is made when it is asked for the first time.
 */
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
      return { contents: makeLazy(code, path), loader: "js", resolveDir: dirname(path) };
    });
  },
};

/** @param code as esbuild prints it: every export begins a line. */
function makeLazy(code, path) {
  const described = new Set();
  const enums = [];
  const eager = code.replace(/^export (const|var) (\w+)\b/gm, (_, kind, name) => {
    if (kind === "var") enums.push(name);
    else described.add(name);
    return `${kind} ${name}`;
  });
  if (/^export /m.test(eager)) throw new Error(`${path} exports what is neither described nor an enum`);
  const lazy = eager.replace(
    /^const (\w+) = (?:\/\* @__PURE__ \*\/ )?((?:\w+Desc|boot)\([\s\S]*?\n?\));$/gm,
    (statement, name, made) => {
      if (!described.delete(name)) return statement;
      const file = /(?<=^\w+\()file_\w+/;
      return `define("${name}", () => ${made.replace(file, "exports.$&")});`;
    },
  );
  if (described.size > 0) throw new Error(`${path} describes in another way: ${[...described].join(", ")}`);
  return `${lazy}${enums.map((name) => `exports.${name} = ${name};\n`).join("")}${DEFINE}`;
}

/** The getter makes way for what it has made. */
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
