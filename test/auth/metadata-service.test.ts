import { describe, expect, it } from "vitest";
import { fetchMetadataToken, type MetadataServiceOptions } from "../../src/auth/metadata-service.js";
import { startMetadataServer } from "./metadata-server.js";

const PATH = "/latest/meta-data/picod-token";
const SESSION = "session-token-1";

function fetchToken(url: string, options: Partial<MetadataServiceOptions> = {}): Promise<string> {
  return fetchMetadataToken({
    url: `${url}${PATH}`,
    flavor: "plain",
    attemptTimeoutMs: 300,
    attempts: 3,
    retryDelayMs: 10,
    ...options,
  });
}

describe("fetchMetadataToken", () => {
  it("asks a plain service once and trims the answer", async () => {
    await using server = await startMetadataServer((_request, response) => response.end("the-token\n"));
    expect(await fetchToken(server.url)).toBe("the-token");
    expect(server.requests).toMatchObject([{ method: "GET", url: PATH }]);
  });

  it("asks IMDSv2 for a session token and sends it along", async () => {
    await using server = await startMetadataServer((request, response) => {
      if (request.method === "PUT") return response.end(SESSION);
      response.statusCode = request.headers["x-aws-ec2-metadata-token"] === SESSION ? 200 : 401;
      return response.end("the-token");
    });
    expect(await fetchToken(server.url, { flavor: "imdsv2" })).toBe("the-token");
    expect(server.requests).toMatchObject([
      { method: "PUT", url: "/latest/api/token", headers: { "x-aws-ec2-metadata-token-ttl-seconds": "60" } },
      { method: "GET", url: PATH, headers: { "x-aws-ec2-metadata-token": SESSION } },
    ]);
  });

  it("does not fall back to IMDSv1 when there are no session tokens", async () => {
    await using server = await startMetadataServer((request, response) => {
      if (request.method === "PUT") response.statusCode = 404;
      response.end("the-token");
    });
    await expect(fetchToken(server.url, { flavor: "imdsv2" })).rejects.toThrow(
      `cannot read the access token from metadata service ${server.url}${PATH}: PUT /latest/api/token answered 404`,
    );
    expect(server.requests).toHaveLength(1);
  });

  it("asks Google's service in its way and accepts its answer", async () => {
    await using server = await startMetadataServer((_request, response) => {
      response.setHeader("Metadata-Flavor", "Google").end("the-token");
    });
    expect(await fetchToken(server.url, { flavor: "gcp" })).toBe("the-token");
    expect(server.requests[0]?.headers).toMatchObject({ "metadata-flavor": "Google" });
  });

  it("refuses an answer that is not from Google's service", async () => {
    await using server = await startMetadataServer((_request, response) => response.end("the-token"));
    await expect(fetchToken(server.url, { flavor: "gcp" })).rejects.toThrow("the answer has no Metadata-Flavor: Google header");
    expect(server.requests).toHaveLength(1);
  });

  it("asks Azure's service in its way", async () => {
    await using server = await startMetadataServer((_request, response) => response.end("the-token"));
    expect(await fetchToken(server.url, { flavor: "azure" })).toBe("the-token");
    expect(server.requests[0]?.headers).toMatchObject({ metadata: "true" });
  });

  it("gives up on a service that accepts and says nothing, naming URL and cause", async () => {
    await using server = await startMetadataServer(() => undefined);
    const startedAt = performance.now();
    await expect(fetchToken(server.url)).rejects.toThrow(
      `cannot read the access token from metadata service ${server.url}${PATH}: no answer to GET ${PATH} within 300 ms`,
    );
    expect(server.requests).toHaveLength(3);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it("gives up on a service that never finishes its answer", async () => {
    await using server = await startMetadataServer((_request, response) => response.write("half"));
    await expect(fetchToken(server.url, { attempts: 1 })).rejects.toThrow("within 300 ms");
  });

  it("fails on an answer that breaks off", async () => {
    await using server = await startMetadataServer((_request, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("half", () => response.destroy());
    });
    await expect(fetchToken(server.url, { attempts: 1 })).rejects.toThrow("cannot read the access token from metadata service");
  });

  it.each([500, 503, 429])("asks again after %i", async (status) => {
    await using server = await startMetadataServer((_request, response, count) => {
      response.statusCode = count === 1 ? status : 200;
      response.end(count === 1 ? "busy" : "the-token");
    });
    expect(await fetchToken(server.url)).toBe("the-token");
    expect(server.requests).toHaveLength(2);
  });

  it("gives up after the last attempt, with what was answered to it", async () => {
    await using server = await startMetadataServer((_request, response) => response.writeHead(500).end());
    await expect(fetchToken(server.url)).rejects.toThrow(`GET ${PATH} answered 500`);
    expect(server.requests).toHaveLength(3);
  });

  it.each([204, 301, 302, 307, 401, 404])("takes %i for the final answer", async (status) => {
    await using other = await startMetadataServer((_request, response) => response.end("a-token-from-elsewhere"));
    await using server = await startMetadataServer((_request, response) =>
      response.writeHead(status, { location: other.url }).end(),
    );
    await expect(fetchToken(server.url)).rejects.toThrow(`GET ${PATH} answered ${status}`);
    expect(server.requests).toHaveLength(1);
    expect(other.requests).toHaveLength(0);
  });

  it("refuses an answer of 1 MB", async () => {
    await using server = await startMetadataServer((_request, response) => response.end("x".repeat(1_000_000)));
    await expect(fetchToken(server.url)).rejects.toThrow("the answer is larger than 65536 bytes");
    expect(server.requests).toHaveLength(1);
  });

  it("refuses an empty answer", async () => {
    await using server = await startMetadataServer((_request, response) => response.end("\n"));
    await expect(fetchToken(server.url)).rejects.toThrow(`the access token from metadata service ${server.url}${PATH} is empty`);
  });

  it("says when nobody listens there", async () => {
    const server = await startMetadataServer(() => undefined);
    await server[Symbol.asyncDispose]();
    await expect(fetchToken(server.url)).rejects.toThrow(/metadata service http:\S+: connect ECONNREFUSED/);
  });
});
