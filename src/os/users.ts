import { readFileSync, statSync } from "node:fs";
import { errnoName } from "./system-error.js";

/** Who a command runs as or a file operation acts as. */
export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** From the user database; empty where it names none. */
  readonly shell: string;
  /** All groups, the primary one included. */
  readonly groups: readonly number[];
}

interface Database {
  readonly users: readonly Omit<User, "groups">[];
  readonly groups: readonly { name: string; gid: number; members: readonly string[] }[];
  /** Those who were asked for, by what they were asked for with. */
  readonly found: Map<string, User>;
  readonly userNames: ReadonlyMap<number, string>;
  readonly groupNames: ReadonlyMap<number, string>;
}

/**
 * The sandbox's users, read from /etc/passwd and /etc/group. Those files, not NSS, are the source: they are what images have,
 * and reading them needs no libc of a certain kind. They are read again when they change, since agents add users.
 */
export class UserDatabase {
  #stamp = "";
  /** Within one turn of the event loop nothing is asked twice: a listing names the owners of thousands of files in one. */
  #isCurrent = false;
  #database: Database = { users: [], groups: [], found: new Map(), userNames: new Map(), groupNames: new Map() };

  /** By name, or by number when no user has that name. A number without an entry is a user with that uid and gid. */
  find(nameOrUid: string): User | undefined {
    const { users, found: known } = this.#current();
    const asked = known.get(nameOrUid);
    if (asked !== undefined) return asked;
    const number = /^\d{1,10}$/.test(nameOrUid) ? Number(nameOrUid) : undefined;
    const found = users.find((user) => user.name === nameOrUid) ?? users.find((user) => user.uid === number);
    if (found !== undefined) {
      const user = { ...found, groups: this.#groupsOf(found.name, found.gid) };
      known.set(nameOrUid, user);
      return user;
    }
    if (number === undefined || number > 0xfffffffe) return undefined;
    return { name: nameOrUid, uid: number, gid: number, home: "/", shell: "", groups: [number] };
  }

  /** By name alone: a number that is no name names nobody. */
  findNamed(name: string): User | undefined {
    const found = this.#current().users.find((user) => user.name === name);
    return found && { ...found, groups: this.#groupsOf(found.name, found.gid) };
  }

  /** Name of a uid, or the number as text. */
  userName(uid: number): string {
    return this.#current().userNames.get(uid) ?? String(uid);
  }

  groupName(gid: number): string {
    return this.#current().groupNames.get(gid) ?? String(gid);
  }

  /** The number of a group, by name or by number; a number needs no entry. */
  findGroup(nameOrGid: string): number | undefined {
    const found = this.#current().groups.find((group) => group.name === nameOrGid);
    if (found !== undefined) return found.gid;
    const number = /^\d{1,10}$/.test(nameOrGid) ? Number(nameOrGid) : undefined;
    return number === undefined || number > 0xfffffffe ? undefined : number;
  }

  #groupsOf(name: string, gid: number): number[] {
    const named = this.#database.groups.filter((group) => group.members.includes(name)).map((group) => group.gid);
    return [...new Set([gid, ...named])];
  }

  #current(): Database {
    if (this.#isCurrent) return this.#database;
    const stamp = stampOf("/etc/passwd") + stampOf("/etc/group");
    if (stamp !== this.#stamp) {
      this.#database = parse(readLines("/etc/passwd"), readLines("/etc/group"));
      this.#stamp = stamp;
    }
    this.#isCurrent = true;
    queueMicrotask(() => {
      this.#isCurrent = false;
    });
    return this.#database;
  }
}

function parse(passwd: string[][], group: string[][]): Database {
  const users = passwd.map(([name = "", , uid, gid, , home, shell = ""]) => {
    return { name, uid: Number(uid), gid: Number(gid), home: home || "/", shell };
  });
  const groups = group.map(([name = "", , gid, members = ""]) => ({ name, gid: Number(gid), members: members.split(",") }));
  // The first entry of a number names it, as getpwuid(3) does: the map is filled from the end.
  const userNames = new Map(users.toReversed().map((user) => [user.uid, user.name]));
  const groupNames = new Map(groups.toReversed().map((entry) => [entry.gid, entry.name]));
  return { users, groups, found: new Map(), userNames, groupNames };
}

function readLines(path: string): string[][] {
  try {
    const lines = readFileSync(path, "utf8").split("\n");
    return lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split(":"));
  } catch (error) {
    if (errnoName(error) === "ENOENT") return [];
    throw error;
  }
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "-;" : `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs};`;
}
