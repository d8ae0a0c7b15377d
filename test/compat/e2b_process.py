"""What E2B's clients do with commands and terminals."""

import asyncio
import time

from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    PtySize,
    TimeoutException,
)
from e2b_clients import Case, connect, main, settle

NO_SUCH_PID = 4_000_000


class Commands(Case):
    async def test_run(self):
        async def body(sandbox, directory):
            run = sandbox.commands.run
            result = await settle(run("echo out; echo err >&2; echo $A; pwd", envs={"A": "b"}, cwd=directory))
            self.assertEqual((result.stdout, result.stderr, result.exit_code), (f"out\nb\n{directory}\n", "err\n", 0))
            with self.assertRaises(CommandExitException) as failed:
                await settle(run("exit 3"))
            self.assertEqual((failed.exception.exit_code, failed.exception.error), (3, "exit status 3"))
            self.assertEqual((await settle(run("whoami", user="daemon", cwd="/"))).stdout, "daemon\n")
            with self.assertRaisesRegex(AuthenticationException, "invalid username: 'nobody-at-all'"):
                await settle(run("true", user="nobody-at-all"))
            with self.assertRaisesRegex(InvalidArgumentException, "cwd '/no/such' does not exist"):
                await settle(run("true", cwd="/no/such"))

        await self.with_each(body)

    async def test_output(self):
        async def body(sandbox, _directory):
            run, chunks, errors = sandbox.commands.run, [], []
            await settle(run("echo out; echo err >&2", on_stdout=chunks.append, on_stderr=errors.append))
            self.assertEqual(("".join(chunks), "".join(errors)), ("out\n", "err\n"))
            broken = await settle(run(f"printf '{'a' * 8191}\\xe2'"))
            self.assertEqual(broken.stdout, "a" * 8191 + "\ufffd")
            big = await settle(run("head -c 2000000 /dev/zero | tr '\\0' x"))
            self.assertEqual(len(big.stdout), 2_000_000)
            late = await settle(run("(sleep 0.5; echo late) & echo early"))
            self.assertEqual(late.stdout, "early\nlate\n")

        await self.with_each(body)

    async def test_time_limit(self):
        async def body(sandbox, _directory):
            with self.assertRaises(TimeoutException):
                await settle(sandbox.commands.run("sleep 1000", timeout=1))
            end = time.monotonic() + 10
            while await settle(sandbox.commands.list()):
                self.assertLess(time.monotonic(), end)

        await self.with_each(body)

    async def test_background(self):
        async def body(sandbox, directory):
            commands = sandbox.commands
            handle = await settle(commands.run("echo one; sleep 1000", background=True, timeout=0, cwd=directory))
            listed = await settle(commands.list())
            self.assertEqual(
                [(each.pid, each.args[-1], each.cwd) for each in listed], [(handle.pid, "echo one; sleep 1000", directory)]
            )
            connected = await settle(commands.connect(handle.pid, timeout=0))
            await settle(handle.disconnect())
            self.assertIs(await settle(connected.kill()), True)
            self.assertEqual(await settle(commands.list()), [])
            with self.assertRaises(CommandExitException) as killed:
                await settle(connected.wait())
            self.assertEqual((killed.exception.exit_code, killed.exception.error), (-1, "signal: killed"))
            self.assertIs(await settle(commands.kill(handle.pid)), False)
            with self.assertRaises(NotFoundException):
                await settle(commands.connect(NO_SUCH_PID))

        await self.with_each(body)

    async def test_input(self):
        async def body(sandbox, _directory):
            commands = sandbox.commands
            cat = await settle(commands.run("cat", background=True, stdin=True))
            await settle(commands.send_stdin(cat.pid, "typed, "))
            await settle(cat.send_stdin(b"by its handle, "))
            await stream_input(sandbox, commands, cat.pid, ["then ", b"streamed"])
            await settle(commands.close_stdin(cat.pid))
            self.assertEqual((await settle(cat.wait())).stdout, "typed, by its handle, then streamed")
            self.assertEqual((await settle(commands.run("cat; echo end"))).stdout, "end\n")
            with self.assertRaises(NotFoundException):
                await stream_input(sandbox, commands, NO_SUCH_PID, ["text"])

        await self.with_each(body)


class Terminals(Case):
    async def test_all(self):
        async def body(sandbox, directory):
            pty, size, shown = sandbox.pty, PtySize(cols=81, rows=25), []
            first, _ = await opened(sandbox, pty.create, [], size=size, timeout=0)
            await settle(pty.resize(first.pid, PtySize(cols=100, rows=30)))
            await settle(first.disconnect())
            again, end = await opened(sandbox, pty.connect, shown, pid=first.pid, timeout=0)
            self.assertEqual(again.pid, first.pid)
            await settle(pty.send_stdin(first.pid, b"stty size; exit 4\n"))
            with self.assertRaises(CommandExitException) as ended:
                await settle(end())
            self.assertEqual(ended.exception.exit_code, 4)
            self.assertIn(b"30 100", b"".join(shown))
            shown.clear()
            second, end = await opened(sandbox, pty.create, shown, size=size, envs={"A": "b"}, cwd=directory)
            await stream_input(sandbox, pty, second.pid, [b"stty size; echo $A ", "$PWD $TERM; exit\n"])
            self.assertEqual((await settle(end())).exit_code, 0)
            self.assertIn(f"25 81\r\nb {directory} xterm-256color".encode(), b"".join(shown))
            third, _ = await opened(sandbox, pty.create, [], size=size)
            self.assertIs(await settle(pty.kill(third.pid)), True)
            self.assertIs(await settle(pty.kill(third.pid)), False)

        await self.with_each(body)


class AtTheSameTime(Case):
    async def test_commands(self):
        sandbox = await connect(AsyncSandbox)
        many = await asyncio.gather(*(sandbox.commands.run(f"echo {number}") for number in range(20)))
        self.assertEqual([each.stdout for each in many], [f"{number}\n" for number in range(20)])


async def opened(sandbox, call, shown, **options):
    """A terminal, and how to wait for its end; what it shows is added, by the blocking client while it waits."""
    if isinstance(sandbox, AsyncSandbox):
        terminal = await call(**options, on_data=shown.append)
        return terminal, terminal.wait
    terminal = call(**options)
    return terminal, lambda: terminal.wait(on_pty=shown.append)


async def stream_input(sandbox, module, pid, chunks):
    """The blocking client is given all at once, the other one piece by piece."""
    if isinstance(sandbox, AsyncSandbox):
        async with module.stream_input(pid) as stream:
            for chunk in chunks:
                await stream.send(chunk)
    else:
        module.stream_input(pid, chunks)


if __name__ == "__main__":
    main()
