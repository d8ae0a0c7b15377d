import { runPythonTool } from "./python-tools.js";

const YAML_TO_JSON = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";

/** Every document of a YAML file. */
export async function readYaml<T>(path: string): Promise<T[]> {
  return JSON.parse(await runPythonTool("python3", "-c", YAML_TO_JSON, path));
}
