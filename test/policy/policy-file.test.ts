import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../src/policy/policy-file.js";

const EXAMPLE = `
daemon_token = "operator"
no_auth = "builder"

[capabilities.operator.permissions]
users = ["*"]
[capabilities.operator.permissions.filesystem]
read_paths = ["/**"]
write_paths = ["/**"]
[capabilities.operator.permissions.shell]
[capabilities.operator.permissions.network]
allowed_domains = ["*"]

[capabilities.builder.permissions]
users = ["agent", "1000"]
[capabilities.builder.permissions.filesystem]
read_paths = ["/workspace/**", "~/.cache/**"]
[capabilities.builder.permissions.shell]
allowed_commands = ["git", "/usr/bin/make"]
working_directory = "/workspace"
env = ["CI", "GIT_*"]
[capabilities.builder.permissions.network]
allowed_domains = ["pypi.org", "*.github.com"]
[capabilities.builder.limits]
timeout_seconds = 2.5
max_file_size_bytes = 10485760
max_files = 100
max_processes = 32

[capabilities."nothing-at-all"]
`;

describe("a policy file", () => {
  it("says what each capability grants", async () => {
    const { capabilities, daemonToken, noAuth } = await parsePolicy(EXAMPLE);
    expect([daemonToken, noAuth, ...capabilities.keys()]).toEqual([
      "operator",
      "builder",
      "operator",
      "builder",
      "nothing-at-all",
    ]);
    const none = { timeoutSeconds: undefined, maxFileSizeBytes: undefined, maxFiles: undefined, maxProcesses: undefined };
    expect(capabilities.get("operator")).toEqual({
      name: "operator",
      users: ["*"],
      filesystem: { readPaths: ["/**"], writePaths: ["/**"] },
      shell: { allowedCommands: undefined, workingDirectory: undefined, env: undefined },
      network: { allowedDomains: ["*"] },
      limits: none,
    });
    expect(capabilities.get("builder")).toEqual({
      name: "builder",
      users: ["agent", "1000"],
      filesystem: { readPaths: ["/workspace/**", "~/.cache/**"], writePaths: [] },
      shell: { allowedCommands: ["git", "/usr/bin/make"], workingDirectory: "/workspace", env: ["CI", "GIT_*"] },
      network: { allowedDomains: ["pypi.org", "*.github.com"] },
      limits: { timeoutSeconds: 2.5, maxFileSizeBytes: 10485760, maxFiles: 100, maxProcesses: 32 },
    });
    expect(capabilities.get("nothing-at-all")).toEqual({
      name: "nothing-at-all",
      users: [],
      filesystem: undefined,
      shell: undefined,
      network: { allowedDomains: [] },
      limits: none,
    });
  });

  it("looks as docs/policy.md shows it", async () => {
    const page = readFileSync(`${import.meta.dirname}/../../docs/policy.md`, "utf8");
    const { capabilities } = await parsePolicy(/```toml\n([\s\S]*?)```/.exec(page)?.[1] ?? "x");
    expect([...capabilities.keys()]).toEqual(["operator", "builder"]);
  });

  it("may be empty, and then grants nothing to anybody", async () => {
    expect(await parsePolicy("")).toEqual({ capabilities: new Map(), daemonToken: undefined, noAuth: undefined });
  });

  it.each([
    ["capabilities = 1", "capabilities: expected a table"],
    ["x = 1", "x: there is no such key; there are daemon_token, no_auth, capabilities"],
    ['daemon_token = "a"', 'daemon_token: "a": there is no such capability; there are none'],
    ["daemon_token = 1", "daemon_token: expected a string"],
    ["[capabilities.a.permission]", "[capabilities.a] permission: there is no such key; there are permissions, limits"],
    ["[capabilities.a.permissions]\nusers = 'a'", "[capabilities.a.permissions] users: expected a list of strings"],
    ["[capabilities.a.permissions]\nusers = ['']", 'users[0]: "": expected a name or a number of a user, or *'],
    [
      "[capabilities.a.permissions]\nusers = ['*']\n[capabilities.a.permissions.filesystem]\nread_paths = ['~/.cache/**']",
      '[capabilities.a.permissions] users: * does not go with "~/.cache/**": name the users',
    ],
    ["[capabilities.a.permissions.files]", "[capabilities.a.permissions] files: there is no such key"],
    ["[[capabilities.a.permissions.shell]]", "capabilities.a.permissions.shell: expected a table"],
    ['[capabilities."a b"]', '[capabilities] "a b": expected 1 to 64'],
    ["[capabilities.a.permissions.filesystem]\nread = []", "[capabilities.a.permissions.filesystem] read: there is no such key"],
    ["[capabilities.a.permissions.filesystem]\nread_paths = '/a'", "read_paths: expected a list of strings"],
    ["[capabilities.a.permissions.filesystem]\nread_paths = [1]", "read_paths[0]: expected a string"],
    ["[capabilities.a.permissions.filesystem]\nwrite_paths = ['/a', 'b']", 'write_paths[1]: "b": it begins with neither'],
    ["[capabilities.a.permissions.filesystem]\nwrite_paths = ['/a/../b']", "it has . or .. in it"],
    ["[capabilities.a.permissions.filesystem]\nwrite_paths = ['/[a']", "a [ without its ]"],
    ['[capabilities.a.permissions.filesystem]\nwrite_paths = ["/a\\u0000"]', "expected no NUL"],
    ["[capabilities.a.permissions.shell]\nallowed_commands = ['bin/ls']", "expected a name, or an absolute path"],
    ["[capabilities.a.permissions.shell]\nallowed_commands = ['/bin/../ls']", "expected a name, or an absolute path"],
    ["[capabilities.a.permissions.shell]\nallowed_commands = ['']", "expected a name, or an absolute path"],
    ["[capabilities.a.permissions.shell]\nworking_directory = 'w'", 'working_directory: "w": expected a path'],
    ["[capabilities.a.permissions.shell]\nenv = ['A=b']", 'env[0]: "A=b": expected a name'],
    ["[capabilities.a.permissions.network]\nallowed_domains = ['http://a']", "expected a name of a host"],
    ["[capabilities.a.permissions.network]\nallowed_domains = ['a.*']", "expected a name of a host"],
    ["[capabilities.a.limits]\nmax_files = 1.5", "[capabilities.a.limits] max_files: expected a whole number of 0 or more"],
    ["[capabilities.a.limits]\nmax_files = '1'", "max_files: expected a whole number"],
    ["[capabilities.a.limits]\ntimeout_seconds = 0", "timeout_seconds: expected a number of 0.001 or more"],
    ["[capabilities.a.limits]\ntimeout_seconds = inf", "timeout_seconds: expected a number"],
    ["[capabilities.a", "Invalid TOML document"],
  ])("is refused: %j", async (text, message) => {
    await expect(parsePolicy(text)).rejects.toThrow(message);
  });

  it("is what its JSON schema describes, key by key", async () => {
    const schema = JSON.parse(readFileSync(`${import.meta.dirname}/../../docs/policy.schema.json`, "utf8"));
    const keysOf = (of: { properties: object }) => Object.keys(of.properties);
    const capability = schema.$defs.capability;
    const { filesystem, shell, network } = capability.properties.permissions.properties;
    expect(keysOf(schema)).toEqual(["daemon_token", "no_auth", "capabilities"]);
    expect(keysOf(capability)).toEqual(["permissions", "limits"]);
    expect([keysOf(filesystem), keysOf(shell), keysOf(network), keysOf(capability.properties.limits)]).toEqual([
      ["read_paths", "write_paths"],
      ["allowed_commands", "working_directory", "env"],
      ["allowed_domains"],
      ["timeout_seconds", "max_file_size_bytes", "max_files", "max_processes"],
    ]);
  });
});
