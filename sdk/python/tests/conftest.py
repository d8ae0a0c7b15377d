"""One daemon for the session, and every test that takes `client` once for each of the two clients."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest
from daemon import Daemon, running_daemon

from picod import AsyncPicoDClient, PicoDClient

Connect = Callable[..., PicoDClient]


class BlockingFacade:
    """An AsyncPicoDClient whose methods block, so that one test serves both clients."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        try:
            self._client = self._run(self._create(*args, **kwargs))
        except BaseException:
            # A loop that goes on keeps the whole run from ending.
            self._stop()
            raise

    @staticmethod
    async def _create(*args: Any, **kwargs: Any) -> AsyncPicoDClient:
        return AsyncPicoDClient(*args, **kwargs)

    def _run(self, awaitable: Awaitable[Any]) -> Any:
        async def result() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(result(), self._loop).result()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: blocking(self._run, getattr(self._client, name)(*args, **kwargs))

    def close(self) -> None:
        self._run(self._client.close())
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingObject:
    """An AsyncProcess, or another asynchronous iterator of a client, whose methods block."""

    def __init__(self, run: Callable[[Awaitable[Any]], Any], target: Any) -> None:
        self._run = run
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        return (lambda *args, **kwargs: blocking(self._run, value(*args, **kwargs))) if callable(value) else value

    def __iter__(self) -> BlockingObject:
        return self

    def __next__(self) -> Any:
        try:
            return self._run(self._target.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> BlockingObject:
        self._run(self._target.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._target.__aexit__(*error))


def blocking(run: Callable[[Awaitable[Any]], Any], returned: Any) -> Any:
    """What a blocking method returns in place of this."""
    if inspect.isawaitable(returned):
        return blocking(run, run(returned))
    return BlockingObject(run, returned) if hasattr(returned, "__anext__") else returned


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    parameters = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in parameters}))
    return True


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    with running_daemon() as daemon:
        yield daemon


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes clients of one kind and closes them after the test."""
    clients: list[PicoDClient] = []

    def make(*args: Any, **kwargs: Any) -> PicoDClient:
        cls = PicoDClient if request.param == "sync" else BlockingFacade
        clients.append(cast(PicoDClient, cls(*args, **kwargs)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(daemon: Daemon, connect: Connect) -> PicoDClient:
    return connect("127.0.0.1", daemon.port, daemon.access_token)
