import { CPU, P99, RATE } from "./figures.mjs";

/** Clients that others have written, where they are installed: they must see what the client here sees. */
export const tools = [
  {
    id: "wrk",
    name: "wrk: GET of 1 KiB, 16 connections, HTTP/1.1",
    kind: "tool",
    protocols: { picod: "http", nginx: "http" },
    program: "/usr/bin/wrk",
    argv: ({ load, headers, url }) => [
      "--threads",
      "1",
      "--connections",
      "16",
      "--duration",
      `${load.toolSeconds}s`,
      "--latency",
      ...headers,
      url,
    ],
    parse: (output) => ({
      // It says nothing about failures where there are none.
      failed: /Non-2xx|Socket errors/.test(output),
      requests: Number(/(\d+) requests in/.exec(output)?.[1]),
      perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
      p99Ms: milliseconds(/ 99%\s+([\d.]+)(us|ms|s)/.exec(output)),
    }),
    figures: [RATE, P99, CPU],
    goals: {},
  },
  {
    id: "h2load",
    name: "h2load: GET of 1 KiB, 16 streams of one connection, HTTP/2",
    kind: "tool",
    protocols: { picod: "http2", nginx: "http2" },
    program: "/usr/bin/h2load",
    argv: ({ load, headers, url }) => [
      "--clients=1",
      "--max-concurrent-streams=16",
      `--requests=${load.toolRequests}`,
      ...headers,
      url,
    ],
    parse: (output) => ({
      failed: !/, 0 failed, 0 errored, 0 timeout/.test(output) || !/ 0 3xx, 0 4xx, 0 5xx/.test(output),
      requests: Number(/^requests: (\d+) total/m.exec(output)?.[1]),
      perSecond: Number(/, ([\d.]+) req\/s,/.exec(output)?.[1]),
    }),
    figures: [RATE, CPU],
    goals: {},
  },
];

const MILLISECONDS = { us: 0.001, ms: 1, s: 1000 };

function milliseconds(match) {
  return match === null ? undefined : Number(match[1]) * MILLISECONDS[match[2]];
}
