import type { Root } from "../os/root.js";
import type { User, UserDatabase } from "../os/users.js";

/** On whose behalf, and within which root, an operation runs. */
export interface Access {
  readonly root: Root;
  readonly user: User;
  readonly users: UserDatabase;
  /** Whose the directories and files that are made become; by default the acting user's. */
  readonly owner?: { readonly uid: number; readonly gid: number };
}

/** Whether what one has begun may be gone on with by the other. */
export function isSameAccess(one: Access, other: Access): boolean {
  return one.user.uid === other.user.uid && one.root.confinement === other.root.confinement;
}
