import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { byPreface, routeConnection } from "../../src/server/preface.js";

it("counts what a connection has said in time, although nobody could listen", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[socket]] = (await Promise.all([once(server, "connection"), once(client, "connect")])) as [[Socket], unknown];
  const taken = new Promise<string>((resolve) => {
    const take = byPreface(
      () => resolve("HTTP/1.1"),
      () => resolve("HTTP/2"),
    );
    routeConnection(socket, 20, take);
    socket.once("close", () => resolve("closed"));
  });
  // It listens now.
  await new Promise(setImmediate);
  client.write("GET / HTTP/1.1\r\n\r\n");
  const until = performance.now() + 100;
  while (performance.now() < until);
  expect(await taken).toBe("HTTP/1.1");
  client.destroy();
  socket.destroy();
  server.close();
});
