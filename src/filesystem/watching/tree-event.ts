/**
 * What happens in a tree, event by event as the kernel tells it, and what scans found. Paths are relative to the beginning, "" is the
 * beginning itself.
 */
export type TreeEvent =
  | {
      readonly kind: "created" | "modified" | "attributes" | "removed";
      readonly path: string;
      readonly isDirectory: boolean;
      /** Its creation had been reported before, or it was there at the beginning. */
      readonly known: boolean;
    }
  | {
      readonly kind: "moved";
      /** Undefined: in a directory that is not watched. */
      readonly from: string | undefined;
      readonly to: string | undefined;
      readonly isDirectory: boolean;
      /** As `known`, of each of the two names. */
      readonly fromKnown: boolean;
      readonly toKnown: boolean;
    }
  /** Events were lost. All that came after this one is told. */
  | { readonly kind: "overflow" }
  | { readonly kind: "unwatched"; readonly path: string; readonly error: unknown }
  /** Last. */
  | { readonly kind: "ended"; readonly cause: "removed" | "moved" | "other"; readonly message: string };
