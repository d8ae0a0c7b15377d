// EC2's instance metadata service as far as a token needs it: version 2 alone, with a session token first.
import { createServer } from "node:http";

createServer((request, response) => {
  const { method, url, headers } = request;
  if (method === "PUT" && url === "/latest/api/token" && Number(headers["x-aws-ec2-metadata-token-ttl-seconds"]) > 0) {
    response.end("session");
  } else if (headers["x-aws-ec2-metadata-token"] !== "session") {
    response.writeHead(401).end();
  } else if (method === "GET" && url === "/latest/meta-data/tags/instance/picod-token") {
    response.end("from-metadata");
  } else {
    response.writeHead(404).end();
  }
}).listen(80, "169.254.169.254");
