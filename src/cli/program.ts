import { Command, InvalidArgumentError, Option } from "commander";
import { ACCESS_TOKEN, type RawFlags, SETTINGS, type SettingName } from "../config.js";
import type { AuditVerifyFlags } from "./audit-verify.js";

export interface Commands {
  serve(flags: RawFlags, accessToken: string | undefined): Promise<void>;
  healthcheck(flags: RawFlags): Promise<void>;
  auditVerify(paths: readonly string[], flags: AuditVerifyFlags): void;
  /** Serves MCP on the standard streams: the tools of this machine, or with an address those of a daemon elsewhere. */
  mcp(flags: RawFlags, accessToken: string | undefined, remote: RemoteFlags | undefined): Promise<void>;
  /** @param json as an object, with what the version alone does not tell. */
  version(json: boolean): void;
  /** Prints the licences of everything that the program holds. */
  licenses(): void;
}

/** Of a daemon that a command is a client of, as they were given. */
export interface RemoteFlags {
  readonly url: string;
  /** PEM files. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** What a sandbox that is served on the standard streams can be told; the rest is about ports and who may use them. */
const MCP_SETTINGS = [
  "accessTokenFile",
  "policy",
  "user",
  "workdir",
  "root",
  "shell",
  "env",
  "killGraceMs",
  "maxProcesses",
  "imageName",
  "sessionDir",
  "sessionIdleTimeoutMs",
  "sessionMaxLifetimeMs",
  "mcpMaxFileSizeBytes",
  "mcpMaxFiles",
  "mcpTimeoutMs",
  "mcpBlockedPaths",
  "auditLog",
  "auditCommands",
  "logLevel",
  "logFormat",
] as const satisfies readonly SettingName[];

const EXAMPLES = `
Every flag can also be given as its PICOD_… variable; the flag wins.

Examples:
  PICOD_ACCESS_TOKEN=$(openssl rand -hex 32) picod
  picod --port 8080 --host 127.0.0.1 --access-token-file /run/secrets/picod-token
  picod --user agent --workdir /workspace --env LANG=C.UTF-8 --env CI=1
  picod --tls-cert /etc/picod/tls.crt --tls-key /etc/picod/tls.key --scopes-file /etc/picod/scopes.json
  picod --metadata-url http://169.254.169.254/latest/meta-data/picod-token --metadata-flavor imdsv2
  picod healthcheck --port 8080
  picod audit verify /var/log/picod/audit.jsonl
  picod mcp --workdir /workspace
  PICOD_ACCESS_TOKEN=… picod mcp --url http://sandbox:49983
`;

/** Declares commands and flags; judging their values is config.ts's. */
export function createProgram(commands: Commands): Command {
  const program = new Command("picod")
    .description("The daemon inside an AI agent's sandbox: run commands and move files over one authenticated port.")
    .option("--version", "print the version")
    .option("--json", "with --version: also commit, Node, architecture and C library, as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("(see picod --help)")
    .exitOverride();
  program.addOption(new Option(ACCESS_TOKEN.flag, `${ACCESS_TOKEN.description} [${ACCESS_TOKEN.env}]`));
  for (const name of Object.keys(SETTINGS) as SettingName[]) program.addOption(optionOf(name));
  program.action(() => {
    const { version, json, accessToken } = program.opts<{ version?: true; json?: true; accessToken?: string }>();
    if (version) return commands.version(json ?? false);
    if (json) program.error("error: --json goes with --version");
    return commands.serve(rawFlags(program), accessToken);
  });

  program
    .command("healthcheck")
    .description("exit with 0 when the daemon on this machine answers, else with 1; for Docker's HEALTHCHECK")
    .addOption(optionOf("port"))
    .addOption(optionOf("host"))
    .addOption(optionOf("tlsCert"))
    .action((_options, command: Command) => commands.healthcheck({ ...rawFlags(program), ...rawFlags(command) }));
  const audit = program.command("audit").description("look after the audit log");
  audit
    .command("verify")
    .description(
      "exit with 0 when no line of an audit log, rotated ones included, was changed, removed, added or moved, else with 1; several, e.g. those moved elsewhere, the oldest first",
    )
    .argument("<file...>", "as --audit-log names it")
    .addOption(
      new Option(
        "--expect <hash>",
        "the log must hold the line with this hash, as the daemon's own log once named it; repeatable",
      )
        .argParser(expectedHash)
        .default([], ""),
    )
    .option("--complete", "the log must begin with the first line that was ever written")
    .option("--json", "print the verdict as JSON")
    .action((paths: string[], { expect, complete = false, json = false }: Partial<AuditVerifyFlags>, command: Command) =>
      commands.auditVerify(paths, { expect: expect ?? [], complete, json: json || command.optsWithGlobals().json === true }),
    );
  const mcp = program
    .command("mcp")
    .description("serve the tools of MCP on standard input and output: those of this machine, or with --url those of a daemon")
    .option(
      "--url <url>",
      "a daemon to be a bridge to, such as http://sandbox:49983; its token is in PICOD_ACCESS_TOKEN or a file",
    )
    .option("--ca <path>", "with --url: PEM file of the authorities to trust instead of the usual ones")
    .option("--cert <path>", "with --url: PEM file of the client's certificate chain")
    .option("--key <path>", "with --url: PEM file of the key of --cert");
  for (const name of MCP_SETTINGS) mcp.addOption(optionOf(name));
  mcp.action((_options, command: Command) => {
    const { url, ca, cert, key } = command.opts<Partial<RemoteFlags>>();
    const remote = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
    const [given] = Object.keys(remote);
    if (url === undefined && given !== undefined) program.error(`error: --${given} goes with --url`);
    const flags = { ...rawFlags(program), ...rawFlags(command) };
    const { accessToken } = program.opts<{ accessToken?: string }>();
    return commands.mcp(flags, accessToken, url === undefined ? undefined : { ...remote, url });
  });
  program
    .command("licenses")
    .description("print the licences of PicoD and of all that is packaged with it")
    .action(() => commands.licenses());
  return program;
}

function expectedHash(text: string, previous: readonly string[]): readonly string[] {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError("It is not a SHA-256 in hex.");
  return [...previous, text.toLowerCase()];
}

function optionOf(name: SettingName): Option {
  const { flag, env, description, defaultText, repeatable } = SETTINGS[name];
  const shown = [description, defaultText === "" ? "" : ` (default: ${defaultText})`, ` [${env}]`].join("");
  const option = new Option(flag, shown);
  if (option.isBoolean() || option.negate) return option;
  // All values are collected as text, in order.
  return option.argParser((value: string, previous: readonly string[] | undefined) =>
    repeatable ? [...(previous ?? []), value] : [value],
  );
}

function rawFlags(command: Command): RawFlags {
  const given = command.options.map((option): [string, readonly string[] | undefined] => {
    const value: unknown = command.getOptionValue(option.attributeName());
    return [option.long ?? "", isSwitchedOn(option, value) ? ["true"] : (value as readonly string[] | undefined)];
  });
  const names = Object.keys(SETTINGS) as SettingName[];
  const flags: Partial<Record<SettingName, readonly string[]>> = {};
  for (const name of names) {
    const [long] = SETTINGS[name].flag.split(" ");
    const texts = given.find(([flag]) => flag === long)?.[1];
    if (Array.isArray(texts)) flags[name] = texts;
  }
  return flags;
}

/** A switch that begins with "no" is the other way round with commander. */
function isSwitchedOn(option: Option, value: unknown): boolean {
  return value === !option.negate;
}
