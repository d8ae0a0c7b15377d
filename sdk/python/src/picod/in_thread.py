"""Waits in an event loop for what blocks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


async def in_thread(run: Callable[[], _T], cancel: Callable[[], None]) -> _T:
    """Runs a function in a thread of its own: transfers take long, and would fill those that `asyncio.to_thread` shares.

    When the task is cancelled `cancel` is called, and the thread is waited for, so that it leaves nothing behind.
    """
    future: Future[_T] = Future()

    def finish() -> None:
        try:
            future.set_result(run())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=finish, name="picod-transfer", daemon=True).start()
    result = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        cancel()
        with contextlib.suppress(Exception):
            await asyncio.shield(result)
        raise
