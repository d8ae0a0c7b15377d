"""Every method of agent-sandbox's `commands` and `files`, with its two Python clients, against one daemon."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import sys
import time
from typing import Any

from k8s_agent_sandbox.async_sandbox import AsyncSandbox
from k8s_agent_sandbox.exceptions import SandboxRequestError
from k8s_agent_sandbox.models import SandboxdInClusterConnectionConfig
from k8s_agent_sandbox.sandbox import Sandbox

rest_port, grpc_port, root = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
LOOK_UP = {"metadata": {"name": "sandbox"}, "status": {"serviceFQDN": "127.0.0.1", "podIPs": ["127.0.0.1"]}}


class Helper:
    """Stands in for the look-up in Kubernetes."""

    injected_api_client = None

    def get_sandbox(self, name: str, namespace: str) -> dict[str, Any]:
        return LOOK_UP


class AsyncHelper(Helper):
    async def get_sandbox(self, name: str, namespace: str) -> dict[str, Any]:  # type: ignore[override]
        return LOOK_UP


class AsyncBuffer(io.BytesIO):
    async def write(self, content: bytes) -> int:  # type: ignore[override]
        return super().write(content)


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def fails(value_of: Any, kind: type[Exception], text: str) -> Exception:
    try:
        await settled(value_of())
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"expected {kind.__name__} with {text}")


async def check_commands(commands: Any) -> None:
    result = await settled(commands.run("echo out; echo err >&2; exit 3"))
    assert (result.stdout, result.stderr, result.exit_code, result.timed_out) == ("out\n", "err\n", 3, False), result
    assert (await settled(commands.run("pwd"))).stdout == f"{root}\n"
    result = await settled(commands.run("pwd; echo $A", cwd="work", env={"A": "b c"}))
    assert result.stdout == f"{root}/work\nb c\n", result
    assert (await settled(commands.run("kill -9 $$"))).exit_code == -1
    assert (await settled(commands.run("printf 'a\\377'"))).stdout == "a\ufffd"
    assert (await settled(commands.run("no-such-program"))).exit_code == 127

    started = time.monotonic()
    result = await settled(commands.run("sleep 1000.5625 & sleep 1000.5625", command_timeout=1))
    assert (result.exit_code, result.timed_out) == (124, True), result
    assert time.monotonic() - started < 20
    # The whole tree goes with the deadline.
    await settled(commands.run("while pgrep -f '[s]leep 1000.5625'; do sleep 0.1; done", timeout=30))
    await fails(lambda: commands.run("sleep 1000", timeout=1), RuntimeError, "DEADLINE_EXCEEDED")
    # A child in the background holds the output: no answer waits for it.
    started = time.monotonic()
    result = await settled(commands.run("sleep 1000.6875 & echo at once"))
    assert result.stdout == "at once\n" and time.monotonic() - started < 20, result
    await settled(commands.run("pkill -f '[s]leep 1000.6875'"))
    # More than gRPC clients take in one answer is cut, and is no error.
    result = await settled(commands.run("head -c 20000000 /dev/zero | tr '\\0' x; echo last"))
    assert result.exit_code == 0 and result.stdout.endswith("last\n") and "bytes omitted]" in result.stdout
    await fails(lambda: commands.run("pwd", cwd="missing"), RuntimeError, "NOT_FOUND")


async def check_files(files: Any, buffer: type[io.BytesIO]) -> None:
    large = os.urandom(8_000_000)
    await settled(files.write("a b/ü.bin", large))
    assert await settled(files.read("a b/ü.bin")) == large
    assert await settled(files.read("/a b/ü.bin")) == large
    await settled(files.write("text", "grüße"))
    assert (await settled(files.read("text"))).decode() == "grüße"
    await settled(files.write("/stream", io.BytesIO(large)))
    target = buffer()
    await settled(files.read_to("stream", target))
    assert target.getvalue() == large
    await fails(lambda: files.read_to("stream", buffer(), max_bytes=1000), RuntimeError, "")
    await settled(files.write("empty", b""))
    assert await settled(files.read("empty")) == b""

    os.symlink("text", f"{root}/link")
    listed = {entry.name: entry for entry in await settled(files.list(""))}
    assert {"a b", "text", "stream", "empty", "link", "work"} <= set(listed), listed
    assert (listed["a b"].type, listed["text"].type, listed["text"].size) == ("directory", "file", 7), listed
    assert abs(listed["text"].modified.timestamp() - time.time()) < 600
    for path in [".", "/"]:
        assert {entry.name for entry in await settled(files.list(path))} == set(listed), path
    assert [entry.name for entry in await settled(files.list("a b"))] == ["ü.bin"]

    for path, exists in [("text", True), ("a b", True), ("/a b/ü.bin", True), ("missing", False)]:
        assert await settled(files.exists(path)) is exists, path

    # Refused at once: a 500 would be repeated for 15 seconds.
    error = await fails(lambda: files.exists("text/below"), SandboxRequestError, "")
    assert error.status_code == 400, error
    error = await fails(lambda: files.read("missing"), SandboxRequestError, "")
    assert error.status_code == 404, error
    error = await fails(lambda: files.delete("a b"), SandboxRequestError, "")
    assert error.status_code == 409, error
    error = await fails(lambda: files.list("../.."), SandboxRequestError, "")
    assert error.status_code == 403, error
    await fails(lambda: files.write("../x", b""), ValueError, "")
    await settled(files.delete("a b", recursive=True))
    for path in ["text", "/stream", "empty", "link"]:
        await settled(files.delete(path))
    assert [entry.name for entry in await settled(files.list(""))] == ["work"]


async def check(sandbox: Any, buffer: type[io.BytesIO]) -> None:
    await check_commands(sandbox.commands)
    await check_files(sandbox.files, buffer)


os.makedirs(f"{root}/work")
sandbox = Sandbox(
    "claim",
    "sandbox",
    "default",
    SandboxdInClusterConnectionConfig(mode="in-cluster-service", rest_port=rest_port, grpc_port=grpc_port),
    k8s_helper=Helper(),
)
asyncio.run(check(sandbox, io.BytesIO))
sandbox.close_connection()


async def check_async_client() -> None:
    config = SandboxdInClusterConnectionConfig(mode="in-cluster-pod-ip", rest_port=rest_port, grpc_port=grpc_port)
    sandbox = AsyncSandbox("claim", "sandbox", "default", config, k8s_helper=AsyncHelper())
    await check(sandbox, AsyncBuffer)
    await sandbox.close_connection()


asyncio.run(check_async_client())
print("done")
