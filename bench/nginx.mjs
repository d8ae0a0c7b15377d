import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, startDaemon } from "./daemon.mjs";

const NGINX = "/usr/sbin/nginx";

/** nginx as a file server with WebDAV's PUT, under the paths that picod has: what a plain one reaches on this machine. */
export async function startNginx(directory, onDispose) {
  if (!existsSync(NGINX)) throw new Error(`${NGINX} not found: on Debian, apt-get install nginx-light`);
  const prefix = join(directory, "nginx");
  mkdirSync(join(prefix, "body"), { recursive: true });
  const http2Port = await freePort();
  const command = (port) => {
    const config = join(prefix, `${port}.conf`);
    writeFileSync(config, configuration(prefix, port, http2Port));
    return { argv: [NGINX, "-p", prefix, "-c", config], env: { PATH: process.env.PATH } };
  };
  const options = { name: "nginx", command, programs: ["nginx"], directory, protocolFamily: "nginx", onDispose };
  return { ...(await startDaemon(options)), http2Address: `127.0.0.1:${http2Port}` };
}

/** The body is stored beside the files, so that a PUT ends with a rename, as picod's does. */
function configuration(prefix, port, http2Port) {
  return `daemon off;
user root;
worker_processes auto;
pid ${prefix}/pid;
error_log stderr;
events {}
http {
  access_log off;
  sendfile on;
  # The default ends a connection after 1,000, with the requests that are under way.
  keepalive_requests 1000000000;
  client_body_temp_path ${prefix}/body;
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${http2Port} http2;
    location /v1/files/ {
      alias /;
      dav_methods PUT;
      client_max_body_size 0;
    }
  }
}
`;
}
