import { randomNumbers } from "../../helpers/random-tree.js";

/** Names that are links to somewhere else, are swapped, do not exist, or mean something to somebody. */
const NAMES = [
  ..."swap/inner,swap/other,swap,inner,deep,file,absolute,upwards,chain,circle,through-proc,listing".split(","),
  ...["..", "..", "..", ".", "", "...", "~", "*", "new", "proc/self/root", "proc/self/cwd", "dev/fd/0", "secret", "outside"],
  ...["\u{EFAE}\u{EFAE}", "\u{EF80}", "\u{EFFF}", "..\u{EFAF}..", "%2e%2e", "..\\..", "\u202e", "name\n"],
];
const MAX_COMPONENTS = 10;

/** Paths that try to leave a root, the same for the same seed. @param outside what they try to reach, as the machine has it. */
export function adversarialPaths(seed: number, outside: string): () => string {
  const random = randomNumbers(seed);
  const component = () => NAMES[random(NAMES.length)] as string;
  return () => {
    const components = Array.from({ length: 1 + random(MAX_COMPONENTS) }, component);
    const path = `/${components.join("/")}`;
    switch (random(12)) {
      case 0:
        return "/..".repeat(1 + random(60)) + outside;
      case 1:
        return `${path}${"/..".repeat(random(60))}${outside}/secret`;
      case 2:
        return `/proc/self/fd/${random(40)}${path}`;
      case 3:
        return `${path}/${"x".repeat(200 + random(100))}`;
      case 4:
        return `${path}/../`.repeat(1 + random(400));
      case 5:
        return `${path}\0${outside}`;
      case 6:
        return `/proc/${process.pid}/root${outside}/secret`;
      case 7:
        return ["/swap/inner/secret", "/swap/other/secret", "/swap/other", "/swap/deep/a/b/../../../../secret"][
          random(4)
        ] as string;
      default:
        return path;
    }
  };
}
