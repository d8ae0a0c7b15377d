import { changeMode, changeOwner, changeTimes, setXattr } from "../../os/attributes.js";
import { errnoName } from "../../os/system-error.js";
import type { Access } from "../access.js";
import type { ArchivedEntry } from "./read-tar-entry.js";
import { TYPE } from "./tar-block.js";

const SET_UID = 0o4000;
const SET_GID = 0o2000;

export type ArchivedAttributes = Pick<
  ArchivedEntry,
  "type" | "mode" | "uid" | "gid" | "userName" | "groupName" | "modifiedTimeNs" | "xattrs"
>;

/** Gives what is unpacked the attributes that the archive names. */
export class AttributeSetter {
  readonly #access: Access;
  readonly #preserveOwner: boolean;

  /** `preserveOwner` takes root. */
  constructor(access: Access, preserveOwner: boolean) {
    this.#access = access;
    this.#preserveOwner = preserveOwner;
  }

  /**
   * Of what a descriptor names. Permission bits are taken exactly; a set-id bit only when the file has the owner, or the group, that had
   * it in the archive: otherwise a program would run as somebody else than it was made for. To be called with the rights of the acting user.
   */
  apply(fd: number, entry: ArchivedAttributes): void {
    const [uid, gid] = this.#ownerOf(entry);
    if (this.#preserveOwner) changeOwner(fd, uid, gid);
    for (const [name, value] of entry.xattrs) setXattrIfPossible(fd, name, value);
    if (entry.type !== TYPE.symlink) {
      const { user } = this.#access;
      const keepsUser = this.#preserveOwner || uid === user.uid;
      const keepsGroup = this.#preserveOwner || gid === user.gid;
      changeMode(fd, entry.mode & ~((keepsUser ? 0 : SET_UID) | (keepsGroup ? 0 : SET_GID)));
    }
    changeTimes(fd, undefined, entry.modifiedTimeNs);
  }

  /** By name where the sandbox knows it, else by number, as tar(1) does. */
  #ownerOf({ uid, gid, userName, groupName }: ArchivedAttributes): [uid: number, gid: number] {
    const { users } = this.#access;
    const isName = (name: string) => name !== "" && !/^\d+$/.test(name);
    return [
      (isName(userName) ? users.find(userName)?.uid : undefined) ?? uid,
      (isName(groupName) ? users.findGroup(groupName) : undefined) ?? gid,
    ];
  }
}

/** File systems without extended attributes, and those with room for none, go without, as with tar(1). */
function setXattrIfPossible(fd: number, name: string, value: Buffer): void {
  try {
    setXattr(fd, name, value);
  } catch (error) {
    if (!["ENOTSUP", "EOPNOTSUPP"].includes(errnoName(error) ?? "")) throw error;
  }
}
