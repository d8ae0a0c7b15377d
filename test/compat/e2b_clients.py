"""E2B's two clients, blocking and asyncio, of the daemon whose address is the first argument. One text of a test serves both."""

import inspect
import os
import sys
import unittest

from e2b import AsyncSandbox, Sandbox
from e2b.connection_config import ConnectionConfig
from packaging.version import Version

CLIENTS = (Sandbox, AsyncSandbox)
URL, DIRECTORY, *MORE = sys.argv[1:]

os.environ.update(E2B_DEBUG="true", E2B_SANDBOX_URL=URL)


async def connect(client, token=None):
    """In debug mode, as users do. It sends no token: with one, as `create` does when E2B's service has answered."""
    if token is None:
        return await settle(client.create())
    return client(
        sandbox_id="sandbox",
        sandbox_domain=None,
        envd_version=Version("0.6.13"),
        envd_access_token=token,
        traffic_access_token=None,
        connection_config=ConnectionConfig(extra_sandbox_headers={"X-Access-Token": token}),
    )


async def settle(answer):
    """What a call answered, whichever client was asked."""
    return await answer if inspect.isawaitable(answer) else answer


async def stream(answer):
    """All of a stream, whichever client was asked."""
    chunks = await settle(answer)
    return b"".join(chunks if hasattr(chunks, "__iter__") else [chunk async for chunk in chunks])


class Case(unittest.IsolatedAsyncioTestCase):
    """A test that is run with each client, in a directory of its own."""

    token = None

    async def with_each(self, body):
        for client in CLIENTS:
            with self.subTest(client.__name__):
                sandbox = await connect(client, self.token)
                directory = f"{DIRECTORY}/{self.id()}-{client.__name__}"
                await settle(sandbox.files.make_dir(directory))
                await body(sandbox, directory)


def main():
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    if result.testsRun > 0 and result.wasSuccessful():
        print("done", flush=True)
        # What the threads of other libraries do while the interpreter ends is theirs.
        os._exit(0)
