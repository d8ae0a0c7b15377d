"""E2B's clients of a daemon that asks for a token: signed addresses, and all of git."""

import unittest
import urllib.error
import urllib.parse
import urllib.request

from e2b import AuthenticationException
from e2b_clients import CLIENTS, DIRECTORY, MORE, Case, connect, main, settle

TOKEN = MORE[0]


def ask(url, body=None, headers=None):
    """The status and the text of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {})) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class SignedAddresses(Case):
    token = TOKEN

    async def test_all(self):
        async def body(sandbox, directory):
            files, path = sandbox.files, f"{directory}/ü and space"
            await settle(files.write(path, "content"))
            for options in ({}, {"use_signature_expiration": 100}, {"user": "root"}):
                self.assertEqual(ask(sandbox.download_url(path, **options)), (200, "content"))
            expired = '{"code":401,"message":"signature is already expired"}\n'
            self.assertEqual(ask(sandbox.download_url(path, use_signature_expiration=-100)), (401, expired))
            invalid = '{"code":401,"message":"invalid signature"}\n'
            other = sandbox.download_url(path).replace("and", "nor")
            self.assertEqual(ask(other), (401, invalid))
            self.assertEqual(ask(sandbox.download_url(path), b"write"), (401, invalid))
            form = b'--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nuploaded\r\n--x--\r\n'
            headers = {"content-type": "multipart/form-data; boundary=x"}
            self.assertEqual(ask(sandbox.upload_url(path), form, headers)[0], 200)
            self.assertEqual(await settle(files.read(path)), "uploaded")

        await self.with_each(body)


class WithoutTheToken(unittest.IsolatedAsyncioTestCase):
    CALLS = (
        lambda sandbox: sandbox.files.list("/"),
        lambda sandbox: sandbox.files.read("/etc/hostname"),
        lambda sandbox: sandbox.files.write(f"{DIRECTORY}/file", "content"),
        lambda sandbox: sandbox.commands.run("true"),
        lambda sandbox: sandbox.commands.list(),
    )

    async def test_all(self):
        for client in CLIENTS:
            for token in (None, "wrong"):
                sandbox = await connect(client, token)
                for call in self.CALLS:
                    with self.assertRaises(AuthenticationException):
                        await settle(call(sandbox))


class Git(Case):
    token = TOKEN

    async def test_all(self):
        async def body(sandbox, directory):
            git, files, path = sandbox.git, sandbox.files, f"{directory}/repository"
            await settle(git.init(path, initial_branch="main"))
            await settle(files.write(f"{path}/file", "one"))
            status = await settle(git.status(path))
            self.assertEqual([(each.name, each.status) for each in status.file_status], [("file", "untracked")])
            await settle(git.configure_user("A", "a@example.com", scope="local", path=path))
            self.assertEqual(await settle(git.get_config("user.name", scope="local", path=path)), "A")
            await settle(git.add(path))
            self.assertTrue((await settle(git.status(path))).has_staged)
            await settle(git.commit(path, message="first", author_name="B"))
            log = await settle(sandbox.commands.run("git log -1 --pretty='%an %ae %s'", cwd=path))
            self.assertEqual(log.stdout, "B a@example.com first\n")
            await settle(git.create_branch(path, "other"))
            branches = await settle(git.branches(path))
            self.assertEqual((branches.current_branch, sorted(branches.branches)), ("other", ["main", "other"]))
            await settle(git.checkout_branch(path, "main"))
            await settle(git.delete_branch(path, "other", force=True))
            self.assertEqual((await settle(git.branches(path))).branches, ["main"])
            await settle(files.write(f"{path}/file", "changed"))
            await settle(git.add(path))
            await settle(git.restore(path, paths=["file"], staged=True, worktree=False))
            self.assertFalse((await settle(git.status(path))).has_staged)
            await settle(git.reset(path, mode="hard", target="HEAD"))
            self.assertEqual(await settle(files.read(f"{path}/file")), "one")

            remote, clone = f"{directory}/remote.git", f"{directory}/clone"
            await settle(git.init(remote, bare=True, initial_branch="main"))
            self.assertIsNone(await settle(git.remote_get(path, "origin")))
            await settle(git.remote_add(path, "origin", remote))
            self.assertEqual(await settle(git.remote_get(path, "origin")), remote)
            with self.assertRaisesRegex(Exception, "(?i)no upstream branch is configured"):
                await settle(git.pull(path))
            await settle(git.push(path, remote="origin", branch="main", set_upstream=True))
            await settle(git.clone(remote, path=clone))
            await settle(files.write(f"{path}/file", "two"))
            await settle(git.add(path))
            await settle(git.commit(path, message="second"))
            await settle(git.push(path))
            await settle(git.pull(clone))
            self.assertEqual(await settle(files.read(f"{clone}/file")), "two")

        await self.with_each(body)


if __name__ == "__main__":
    main()
