import { randomUUID } from "node:crypto";
import { MoveMode, type WriteFileRequest } from "../../../src/gen/picod/v1/filesystem_pb.js";
import type { Clients } from "../../helpers/clients.js";
import type { Daemon } from "../../helpers/start-daemon.js";
import { call } from "./http-api.js";

/** What an operation is done with: paths as it sees them. */
export interface Cell {
  /** A directory of the user's own that has a file `source` and a directory `tree` in it. */
  readonly own: string;
  readonly file: string;
  readonly directory: string | undefined;
}

export interface Operation {
  readonly name: string;
  readonly about: "file" | "directory";
  /** The same with coreutils, of $own, $file and $directory. Its exit status says whether the user may. */
  readonly shell: string;
  /** Rejects when the user may not; what it resolves with is not looked at. */
  run(clients: Clients, cell: Cell & { readonly directory: string }, daemon: Daemon): Promise<unknown>;
}

const NEW = Buffer.from("new\n");

async function* write(path: string, more: object = {}) {
  yield { request: { case: "metadata" as const, value: { path, ...more } } };
  yield { request: { case: "chunk" as const, value: NEW } } satisfies { request: WriteFileRequest["request"] };
}

async function upload({ filesystem }: Clients, path: string): Promise<void> {
  const uploadId = randomUUID();
  await filesystem.writeFile(write(path, { uploadId }));
  try {
    await filesystem.commitUpload({ uploadId, size: BigInt(NEW.length) });
  } catch (error) {
    await filesystem.abortUpload({ uploadId });
    throw error;
  }
}

async function drain<T>(messages: AsyncIterable<T>): Promise<T | undefined> {
  let last: T | undefined;
  for await (const message of messages) last = message;
  return last;
}

/** find(1) and grep(1) fail in the end when something could not be read. */
function assertNone(unreadableCount: bigint | undefined): void {
  if (unreadableCount !== 0n) throw new Error(`${unreadableCount} unreadable`);
}

async function http(daemon: Daemon, method: string, path: string, body?: string): Promise<void> {
  const answer = await call(daemon, method, `/v1/files/${encodeURIComponent(path)}`, body);
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.body}`);
}

async function watch({ filesystem }: Clients, path: string): Promise<void> {
  const stop = new AbortController();
  for await (const { event } of filesystem.watchDirectory({ path }, { signal: stop.signal })) {
    // Leaving the loop cancels the call.
    if (event.case === "ready") return;
  }
}

async function* archiveTo(path: string, archive: Uint8Array<ArrayBuffer>, atomic: boolean) {
  yield { request: { case: "metadata" as const, value: { path, atomic } } };
  yield { request: { case: "chunk" as const, value: archive } };
}

/** All of them. @param archive a tar archive that holds the file `unpacked`. */
export function operations(archive: Uint8Array<ArrayBuffer>): readonly Operation[] {
  return [
    { name: "stat", about: "file", shell: 'stat "$file"', run: ({ filesystem }, { file }) => filesystem.stat({ path: file }) },
    {
      name: "stat, following",
      about: "file",
      shell: 'stat -L "$file"',
      run: ({ filesystem }, { file }) => filesystem.stat({ path: file, followSymlinks: true }),
    },
    {
      name: "read",
      about: "file",
      shell: 'cat "$file"',
      run: ({ filesystem }, { file }) => drain(filesystem.readFile({ path: file })),
    },
    { name: "GET", about: "file", shell: 'cat "$file"', run: (_, { file }, daemon) => http(daemon, "GET", file) },
    {
      name: "replace",
      about: "file",
      shell: 'echo new > "$file"',
      run: ({ filesystem }, { file }) => filesystem.writeFile(write(file)),
    },
    { name: "PUT", about: "file", shell: 'echo new > "$file"', run: (_, { file }, daemon) => http(daemon, "PUT", file, "new\n") },
    { name: "upload onto", about: "file", shell: 'echo new > "$file"', run: (clients, { file }) => upload(clients, file) },
    {
      name: "patch",
      about: "file",
      shell: 'echo new | dd "of=$file" conv=notrunc',
      run: ({ filesystem }, { file }) => filesystem.writeFile(write(file, { offset: 0n })),
    },
    {
      name: "write new",
      about: "directory",
      shell: 'echo new > "$directory/new"',
      run: ({ filesystem }, { directory }) => filesystem.writeFile(write(`${directory}/new`)),
    },
    {
      name: "upload new",
      about: "directory",
      shell: 'echo new > "$directory/new"',
      run: (clients, { directory }) => upload(clients, `${directory}/new`),
    },
    {
      name: "list",
      about: "directory",
      shell: 'ls "$directory/"',
      run: ({ filesystem }, { directory }) => drain(filesystem.listDirectory({ path: directory })),
    },
    {
      name: "make a directory",
      about: "directory",
      shell: 'mkdir -p "$directory/a/b"',
      run: ({ filesystem }, { directory }) => filesystem.makeDirectory({ path: `${directory}/a/b` }),
    },
    {
      name: "move away",
      about: "file",
      shell: 'mv -T "$file" "$own/moved"',
      run: ({ filesystem }, { own, file }) => filesystem.move({ source: file, destination: `${own}/moved` }),
    },
    {
      name: "move onto",
      about: "file",
      shell: 'mv -fT "$own/source" "$file"',
      run: ({ filesystem }, { own, file }) => filesystem.move({ source: `${own}/source`, destination: file }),
    },
    {
      name: "move into",
      about: "directory",
      shell: 'mv -T "$own/tree" "$directory/moved"',
      run: ({ filesystem }, { own, directory }) =>
        filesystem.move({ source: `${own}/tree`, destination: `${directory}/moved`, mode: MoveMode.NO_REPLACE }),
    },
    {
      name: "move a directory away",
      about: "directory",
      shell: 'mv -T "$directory" "$own/moved"',
      run: ({ filesystem }, { own, directory }) => filesystem.move({ source: directory, destination: `${own}/moved` }),
    },
    {
      name: "copy away",
      about: "file",
      shell: 'cp -aT "$file" "$own/copy"',
      run: ({ filesystem }, { own, file }) => filesystem.copy({ source: file, destination: `${own}/copy` }),
    },
    {
      name: "copy onto",
      about: "file",
      // A link is replaced; attributes that only another may set do not keep the content.
      shell: '{ [ ! -L "$file" ] || rm "$file"; } && cp -fT "$own/source" "$file" && { cp -afT "$own/source" "$file"; true; }',
      run: ({ filesystem }, { own, file }) => filesystem.copy({ source: `${own}/source`, destination: file }),
    },
    {
      name: "copy into",
      about: "directory",
      shell: 'cp -aT "$own/tree" "$directory/copy"',
      run: ({ filesystem }, { own, directory }) => filesystem.copy({ source: `${own}/tree`, destination: `${directory}/copy` }),
    },
    {
      name: "copy a directory away",
      about: "directory",
      shell: 'cp -aT "$directory" "$own/copy"',
      run: ({ filesystem }, { own, directory }) => filesystem.copy({ source: directory, destination: `${own}/copy` }),
    },
    { name: "remove", about: "file", shell: 'rm "$file"', run: ({ filesystem }, { file }) => filesystem.remove({ path: file }) },
    { name: "DELETE", about: "file", shell: 'rm "$file"', run: (_, { file }, daemon) => http(daemon, "DELETE", file) },
    {
      name: "remove a tree",
      about: "directory",
      shell: 'rm -r "$directory"',
      run: ({ filesystem }, { directory }) => filesystem.remove({ path: directory, recursive: true }),
    },
    {
      name: "set the mode",
      about: "file",
      shell: 'chmod 2640 "$file"',
      run: ({ filesystem }, { file }) => filesystem.setAttributes({ path: file, mode: 0o2640 }),
    },
    {
      name: "give away",
      about: "file",
      shell: 'chown root "$file"',
      run: ({ filesystem }, { file }) => filesystem.setAttributes({ path: file, owner: "root" }),
    },
    {
      name: "give to a group one is in",
      about: "file",
      shell: 'chgrp 4242 "$file"',
      run: ({ filesystem }, { file }) => filesystem.setAttributes({ path: file, group: "4242" }),
    },
    {
      name: "give to another group",
      about: "file",
      shell: 'chgrp 1 "$file"',
      run: ({ filesystem }, { file }) => filesystem.setAttributes({ path: file, group: "1" }),
    },
    {
      name: "set the time",
      about: "file",
      shell: 'touch -c -d @1000 "$file" && test -e "$file"',
      run: ({ filesystem }, { file }) =>
        filesystem.setAttributes({ path: file, modifiedTime: { seconds: 1000n }, accessedTime: { seconds: 1000n } }),
    },
    {
      name: "set an xattr",
      about: "file",
      shell: 'setfattr -n user.a -v b "$file"',
      run: ({ filesystem }, { file }) => filesystem.setAttributes({ path: file, setXattrs: { "user.a": Buffer.from("b") } }),
    },
    { name: "watch", about: "directory", shell: 'ls "$directory/"', run: (clients, { directory }) => watch(clients, directory) },
    {
      name: "find",
      about: "directory",
      shell: 'find "$directory/" -size -9',
      run: async ({ filesystem }, { directory }) =>
        assertNone((await drain(filesystem.find({ path: directory })))?.summary?.unreadableCount),
    },
    {
      name: "search",
      about: "file",
      shell: 'grep content "$file"',
      run: async ({ filesystem }, { file }) => {
        const last = await drain(filesystem.search({ path: file, pattern: "content" }));
        if (last?.event.case === "summary" && last.event.value.matchedLines === 0n) throw new Error("no match");
      },
    },
    {
      name: "search a tree",
      about: "directory",
      shell: 'grep -r content "$directory/"',
      run: async ({ filesystem }, { directory }) => {
        const last = await drain(filesystem.search({ path: directory, pattern: "content" }));
        if (last?.event.case === "summary") assertNone(last.event.value.unreadableCount);
      },
    },
    {
      name: "archive",
      about: "directory",
      // Into /dev/null it would read nothing.
      shell: 'tar -c -C "$directory" . > /dev/zero',
      run: ({ filesystem }, { directory }) => drain(filesystem.readArchive({ path: directory })),
    },
    {
      name: "unpack",
      about: "directory",
      shell: 'cd "$directory" && tar -x -f "$own/archive"',
      run: ({ filesystem }, { directory }) => filesystem.writeArchive(archiveTo(directory, archive, false)),
    },
    {
      name: "unpack new",
      about: "directory",
      shell: 'mkdir "$directory/new" && cd "$directory/new" && tar -x -f "$own/archive"',
      run: ({ filesystem }, { directory }) => filesystem.writeArchive(archiveTo(`${directory}/new`, archive, true)),
    },
  ];
}
