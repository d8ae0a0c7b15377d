import { randomBytes } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import type { EventWatch } from "../../filesystem/watching/event-watch.js";
import type { EnvdAccess } from "./access.js";

/** They have no end of their own, and each keeps its events. */
const MAX_WATCHES = 256;

/** What a client polls. */
export interface PolledWatch {
  readonly watch: EventWatch;
  readonly access: EnvdAccess;
  readonly path: string;
  readonly includeEntry: boolean;
}

/** The watches of clients that poll, by the names that they are given. */
export class PolledWatches {
  readonly #byId = new Map<string, PolledWatch>();

  /** @throws WATCH_LIMIT_REACHED. */
  add(polled: PolledWatch): string {
    if (this.#byId.size >= MAX_WATCHES) {
      const message = `cannot watch ${polled.path}: ${MAX_WATCHES} watchers have not been removed`;
      throw new PicodError("WATCH_LIMIT_REACHED", message, { path: polled.path });
    }
    const id = `w${randomBytes(12).toString("hex")}`;
    this.#byId.set(id, polled);
    return id;
  }

  /** @param by who may open the same as whoever has made it. @throws not_found. */
  find(id: string, by: EnvdAccess): PolledWatch {
    const found = this.#byId.get(id);
    if (found?.access.root.confinement !== by.root.confinement)
      throw new ConnectError(`watcher with id ${id} not found`, Code.NotFound);
    return found;
  }

  /** @throws not_found. */
  remove(id: string, by: EnvdAccess): void {
    this.find(id, by).watch.close();
    this.#byId.delete(id);
  }
}
