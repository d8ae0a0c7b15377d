import { execFile } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { startDaemon } from "./daemon.mjs";

const run = promisify(execFile);
const SSHD = "/usr/sbin/sshd";
const SFTP_SERVER = "/usr/lib/openssh/sftp-server";
/** sshd insists on it even where it does not separate privileges. */
const PRIVILEGE_SEPARATION_DIRECTORY = "/run/sshd";

/** sshd as Debian ships it, but on its own port with its own keys, and with room for all sessions of a case in one connection. */
export async function startSshd(directory, onDispose) {
  if (process.getuid() !== 0) throw new Error("sshd lets only root log in as root: run the benchmark as root");
  const missing = [SSHD, SFTP_SERVER].filter((path) => !existsSync(path));
  if (missing.length > 0) {
    throw new Error(`${missing.join(" and ")} not found: on Debian, apt-get install openssh-server openssh-client`);
  }
  if (!existsSync(PRIVILEGE_SEPARATION_DIRECTORY)) {
    mkdirSync(PRIVILEGE_SEPARATION_DIRECTORY, { mode: 0o755 });
    onDispose(() => rmSync(PRIVILEGE_SEPARATION_DIRECTORY, { recursive: true }));
  }
  const [hostKey, clientKey] = [join(directory, "ssh-host-key"), join(directory, "ssh-client-key")];
  for (const path of [hostKey, clientKey]) await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path]);
  const config = join(directory, "sshd_config");
  writeFileSync(config, configuration(hostKey, `${clientKey}.pub`));
  const command = (port) => ({
    argv: [SSHD, "-D", "-e", "-f", config, "-o", "ListenAddress=127.0.0.1", "-p", String(port)],
    env: { PATH: process.env.PATH },
  });
  const programs = ["sshd", "sshd-session", "sftp-server"];
  const daemon = await startDaemon({ name: "sshd", command, programs, directory, protocolFamily: "sshd", onDispose });
  return { ...daemon, clientKey };
}

/** SHLVL keeps bash from reading root's .bashrc before each command, which it does for sshd alone and may cost anything. */
function configuration(hostKey, authorizedKeys) {
  return `HostKey ${hostKey}
PidFile none
AuthorizedKeysFile ${authorizedKeys}
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PrintMotd no
PermitUserRC no
MaxSessions 256
MaxStartups 1000
SetEnv SHLVL=1
Subsystem sftp ${SFTP_SERVER}
`;
}
