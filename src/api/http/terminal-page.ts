import { readProgramFile } from "../../program-file.js";
import type { HttpRoute } from "../http-route.js";

const HEADERS = {
  // xterm.js makes style elements.
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

const FILES = [
  ["/terminal", "index.html", "text/html; charset=utf-8"],
  ["/terminal/terminal.js", "terminal.js", "text/javascript; charset=utf-8"],
  ["/terminal/terminal.css", "terminal.css", "text/css; charset=utf-8"],
] as const;

/** A terminal for a person with a browser; the build puts its files beside the daemon. */
export function createTerminalPageRoutes(): HttpRoute[] {
  return FILES.map(([path, file, type]) => ({
    method: "GET",
    path,
    // Without secrets: the page asks for the token itself.
    requires: "public",
    handle: async ({ send }) => send(200, { ...HEADERS, "content-type": type }, readProgramFile(`terminal/${file}`)),
  }));
}
