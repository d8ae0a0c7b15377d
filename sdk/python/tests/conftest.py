"""One daemon for the session, and every test that takes `client` once for each of the two clients."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
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
        self._client = self._run(self._create(*args, **kwargs))

    @staticmethod
    async def _create(*args: Any, **kwargs: Any) -> AsyncPicoDClient:
        return AsyncPicoDClient(*args, **kwargs)

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._run(getattr(self._client, name)(*args, **kwargs))

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
