import { describe, expect, it } from "vitest";
import { CANARY, startConfined } from "../helpers/confined.js";
import { unlimitedWithin } from "../helpers/policy-text.js";

/** A machine of its own kind: everything of /usr/local is where it was, and its directory may be changed without changing this machine's. */
const WITH_OWN_LOCAL = `
kept=$(mktemp -d)
mount --bind /usr/local "$kept" && mount -t tmpfs picod-test /usr/local || exit 9
for each in "$kept"/*; do
  name=\${each##*/}; [ "$name" = include ] && continue
  if [ -d "$each" ]; then mkdir "/usr/local/$name"; else touch "/usr/local/$name"; fi
  mount --bind "$each" "/usr/local/$name" || exit 9
done
mkdir /usr/local/include
umount -l "$kept"; rmdir "$kept"
exec "$@"`;

const policyOf = (base: string) => unlimitedWithin("operator", "/**") + unlimitedWithin("held", `${base}/workspace/**`);

describe("what every command is granted of the system", () => {
  it("is where it was when the daemon started: no link that was made since grants what is behind it", async () => {
    const wrapper = ["unshare", "--mount", "sh", "-c", WITH_OWN_LOCAL, "sh"];
    await using confined = await startConfined(policyOf, { wrapper }, ["operator", "held"]);
    const read = async (line: string) => {
      let output = "";
      for await (const { event } of confined.clients("held").process.start({ command: line, pty: { cols: 200, rows: 24 } })) {
        if (event?.event.case === "output") output += Buffer.from(event.event.value.output.value ?? []).toString();
      }
      return output;
    };
    const change = (line: string) => confined.execute("operator", { argv: ["sh", "-c", line] });
    expect(await change("echo shown > /usr/local/include/shown")).toMatchObject({ exitCode: 0 });
    // Of a terminal: it has a thread made for it.
    const asked = `cat /usr/local/include/shown; cat ${confined.canary}`;
    expect(await read(asked)).toMatch(/^shown[\s\S]*Permission denied/);
    expect(await change("rm -r /usr/local/include && ln -s / /usr/local/include && ln -s / /usr/local/libexec")).toMatchObject({
      exitCode: 0,
    });
    const told = await read(asked);
    expect(told).toContain("Permission denied");
    expect(told).not.toContain(CANARY);
  });
});
