"""What E2B's clients do with files."""

import asyncio
import io
import unittest

from e2b import AsyncSandbox, FileNotFoundException, FileType, InvalidArgumentException, Sandbox, SandboxException
from e2b_clients import DIRECTORY, Case, connect, main, settle, stream


class Files(Case):
    async def test_forms(self):
        async def body(sandbox, directory):
            files, path = sandbox.files, f"{directory}/file"
            written = await settle(files.write(path, "content"))
            self.assertEqual((written.name, written.path), ("file", path))
            self.assertEqual(await settle(files.read(path)), "content")
            self.assertEqual(bytes(await settle(files.read(path, format="bytes"))), b"content")
            self.assertEqual(await stream(files.read(path, format="stream")), b"content")
            self.assertEqual(await stream(files.read(path, format="stream", gzip=True)), b"content")
            again = "again " * 10_000
            await settle(files.write(path, again, gzip=True))
            self.assertEqual(await settle(files.read(path, gzip=True)), again)
            await settle(files.write(path, io.BytesIO(b"of a file")))
            self.assertEqual(await settle(files.read(path)), "of a file")
            await settle(files.write(path, b"octets", use_octet_stream=True))
            self.assertEqual(await settle(files.read(path)), "octets")
            await settle(files.write(path, ""))
            self.assertEqual(await settle(files.read(path)), "")
            with self.assertRaises(FileNotFoundException):
                await settle(files.read(f"{directory}/none"))
            with self.assertRaises(FileNotFoundException):
                await settle(files.read(f"{directory}/none", format="stream"))
            with self.assertRaises(InvalidArgumentException):
                await settle(files.write(directory, "content"))

        await self.with_each(body)

    async def test_many(self):
        async def body(sandbox, directory):
            files, names = sandbox.files, ("1", "a/2", "ü 3")
            data = [{"path": f"{directory}/{name}", "data": name} for name in names]
            written = await settle(files.write_files(data, metadata={"by": "me"}))
            self.assertEqual([(each.name, each.metadata) for each in written], [(n, {"by": "me"}) for n in ("1", "2", "ü 3")])
            for name in names:
                self.assertEqual(await settle(files.read(f"{directory}/{name}")), name)
            listed = await settle(files.list(directory))
            self.assertEqual([(entry.name, entry.type) for entry in listed], [("1", FILE), ("a", DIR), ("ü 3", FILE)])
            listed = await settle(files.list(directory, depth=2))
            self.assertEqual([entry.path[len(directory) :] for entry in listed], ["/1", "/a", "/a/2", "/ü 3"])
            self.assertEqual(listed[2].metadata, {"by": "me"})

        await self.with_each(body)

    async def test_entries(self):
        async def body(sandbox, directory):
            files, path = sandbox.files, f"{directory}/file"
            await settle(files.write(path, "content", metadata={"by": "me"}))
            info = await settle(files.get_info(path))
            self.assertEqual((info.name, info.type, info.path, info.size, info.mode), ("file", FILE, path, 7, 0o644))
            self.assertEqual((info.permissions, info.owner, info.group), ("-rw-r--r--", "nobody", "nogroup"))
            self.assertEqual((info.metadata, info.symlink_target), ({"by": "me"}, None))
            await settle(sandbox.commands.run(f"ln -s file {directory}/link", user="root", cwd="/"))
            link = await settle(files.get_info(f"{directory}/link"))
            self.assertEqual((link.name, link.type, link.symlink_target), ("link", FILE, path))
            self.assertTrue(await settle(files.make_dir(f"{directory}/made/below")))
            self.assertFalse(await settle(files.make_dir(f"{directory}/made/below")))
            renamed = await settle(files.rename(path, f"{directory}/made/new"))
            self.assertEqual((renamed.path, renamed.metadata), (f"{directory}/made/new", {"by": "me"}))
            self.assertFalse(await settle(files.exists(path)))
            self.assertTrue(await settle(files.exists(f"{directory}/made/new")))
            await settle(files.write(f"{directory}/made/new", "other"))
            self.assertIsNone((await settle(files.get_info(f"{directory}/made/new"))).metadata)
            await settle(files.remove(f"{directory}/made"))
            self.assertFalse(await settle(files.exists(f"{directory}/made")))
            for call in (files.get_info, files.list, lambda gone: files.rename(gone, path)):
                with self.assertRaises(FileNotFoundException):
                    await settle(call(f"{directory}/made"))

        await self.with_each(body)


class Watches(unittest.IsolatedAsyncioTestCase):
    """The blocking client asks for what is new, the other one is told."""

    async def test_asking(self):
        files, directory = (await connect(Sandbox)).files, f"{DIRECTORY}/asking"
        files.make_dir(f"{directory}/below")
        watches = [files.watch_dir(directory), files.watch_dir(directory, recursive=True, include_entry=True)]
        files.write(f"{directory}/file", "content")
        files.write(f"{directory}/below/file", "content")
        flat, deep = [watch.get_new_events() for watch in watches]
        self.assertEqual([(event.type.value, event.name) for event in flat], written("file"))
        self.assertEqual([(event.type.value, event.name) for event in deep], written("file") + written("below/file"))
        self.assertEqual(deep[-1].entry.path, f"{directory}/below/file")
        self.assertEqual(watches[0].get_new_events(), [])
        for watch in watches:
            watch.stop()
        with self.assertRaises(SandboxException):
            watches[0].get_new_events()
        with self.assertRaises(FileNotFoundException):
            files.watch_dir(f"{directory}/none")
        with self.assertRaises(InvalidArgumentException):
            files.watch_dir(f"{directory}/file")

    async def test_being_told(self):
        files, directory = (await connect(AsyncSandbox)).files, f"{DIRECTORY}/told"
        await files.make_dir(directory)
        told, events = asyncio.Event(), []

        def on_event(event):
            events.append((event.type.value, event.name, event.entry and event.entry.size))
            if event.name == "a/b" and event.type.value == "write":
                told.set()

        watch = await files.watch_dir(directory, on_event=on_event, recursive=True, include_entry=True)
        await files.write(f"{directory}/file", "content")
        await files.write(f"{directory}/a/file", "content")
        await files.write(f"{directory}/a/b", "content")
        await asyncio.wait_for(told.wait(), 10)
        await watch.stop()
        self.assertEqual([event[:2] for event in events[:3]], written("file"))
        self.assertEqual(events[-1], ("write", "a/b", 7))
        with self.assertRaises(FileNotFoundException):
            await files.watch_dir(f"{directory}/none", on_event=on_event)


FILE, DIR = FileType.FILE, FileType.DIR


def written(name):
    """The events of a small file that is made."""
    return [(kind, name) for kind in ("create", "chmod", "write")]


if __name__ == "__main__":
    main()
