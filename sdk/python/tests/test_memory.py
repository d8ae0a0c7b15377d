"""Transfers hold one chunk at a time, however large the file is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon import Daemon

SIZE = 256 * 1024 * 1024
GROWTH_LIMIT_KIB = 32 * 1024

SYNC = """
import resource, sys
from picod import PicoDClient

port, source, remote, copy = sys.argv[1:]
with PicoDClient("127.0.0.1", int(port)) as client:
    client.stat("/")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    client.upload_file(source, remote)
    client.download_file(remote, copy)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

ASYNC = """
import asyncio, resource, sys
from picod import AsyncPicoDClient

async def main(port, source, remote, copy):
    async with AsyncPicoDClient("127.0.0.1", int(port)) as client:
        await client.stat("/")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await client.upload_file(source, remote)
        await client.download_file(remote, copy)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("program", [SYNC, ASYNC], ids=["sync", "async"])
def test_memory_does_not_grow_with_the_file(daemon: Daemon, tmp_path: Path, program: str) -> None:
    source, remote, copy = tmp_path / "source", tmp_path / "remote", tmp_path / "copy"
    with source.open("wb") as file:
        file.truncate(SIZE)
    output = subprocess.check_output(
        [sys.executable, "-c", program, str(daemon.port), str(source), str(remote), str(copy)],
        env={**os.environ, "PICOD_ACCESS_TOKEN": daemon.access_token},
        text=True,
    )
    assert copy.stat().st_size == SIZE
    for path in (source, remote, copy):
        path.unlink()
    assert int(output) < GROWTH_LIMIT_KIB
