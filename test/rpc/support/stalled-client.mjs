// A client that sends what it is given, never reads and never ends, until it is killed:
//   node stalled-client.mjs <port> <HTTP version> <path> <content type> <token> <body in hexadecimal>
import { request } from "node:http";
import { connect } from "node:http2";

const [port, version, path, contentType, token, body] = process.argv.slice(2);
const headers = { "content-type": contentType, authorization: `Bearer ${token}` };
const bytes = Buffer.from(body, "hex");
if (version === "2") {
  const stream = connect(`http://127.0.0.1:${port}`).request({ ":method": "POST", ":path": path, te: "trailers", ...headers });
  if (path.endsWith("/WriteFile")) stream.write(bytes);
  else stream.end(bytes);
} else {
  const outgoing = request({ host: "127.0.0.1", port, path, method: "POST", headers });
  if (path.endsWith("/WriteFile")) outgoing.write(bytes);
  else outgoing.end(bytes);
}
