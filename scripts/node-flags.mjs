/**
 * What every launcher starts Node with. V8 takes a code cache only under the flags that it was made under, also that of Node's own modules,
 * without which the start takes 25 ms more; the bounds of the heap are none of them.
 */
export const NODE_FLAGS = [
  // SIGUSR1 would open a debugger to every process of this user.
  "--disable-sigusr1",
  "--v8-pool-size=2",
  // Young garbage is collected early: otherwise it fills three times 16 MiB before it is.
  // But not before there is as much, which there is not at the start.
  "--min-semi-space-size=4",
  "--max-semi-space-size=4",
  "--no-warnings",
];

/** The bound of the heap: what it has without a limit of memory, and with the narrowest. */
export const HEAP_MIB = { max: 512, min: 48 };

/** Puts into the text of a launcher what it starts Node with. */
export function fillLauncher(text) {
  return text
    .replaceAll("@NODE_FLAGS@", NODE_FLAGS.join(" "))
    .replaceAll("@MAX_HEAP_MIB@", String(HEAP_MIB.max))
    .replaceAll("@MIN_HEAP_MIB@", String(HEAP_MIB.min));
}
