"""Makes one gapless sequence of events of a watch whose connection may break: what was missed is found by comparing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .processes import ProcessEvent, ProcessEventKind, ProcessInfo, ProcessState, process_info
from .v1 import process_pb2


class WatchState:
    """The processes as the watcher knows them."""

    def __init__(self, processes: Iterable[ProcessInfo]) -> None:
        self._known = {process.id: process for process in processes}

    def accept(self, response: process_pb2.WatchProcessesResponse) -> Iterator[ProcessEvent]:
        """Yields the event, unless the watcher knows of it already."""
        kind = response.WhichOneof("event")
        if kind == "deleted_id":
            yield from self._deleted(response.deleted_id)
        elif kind in ("started", "updated", "ended"):
            yield from self._seen(process_info(getattr(response, kind)))

    def compare(self, processes: Iterable[ProcessInfo]) -> Iterator[ProcessEvent]:
        """Yields what must have happened since the last event. A process that started and was deleted meanwhile is missed."""
        current = {process.id: process for process in processes}
        for process_id in self._known.keys() - current.keys():
            yield from self._deleted(process_id)
        for process in current.values():
            yield from self._seen(process)

    def _deleted(self, process_id: str) -> Iterator[ProcessEvent]:
        if self._known.pop(process_id, None) is not None:
            yield ProcessEvent(ProcessEventKind.DELETED, process_id, None)

    def _seen(self, process: ProcessInfo) -> Iterator[ProcessEvent]:
        known = self._known.get(process.id)
        self._known[process.id] = process
        if known is None:
            yield ProcessEvent(ProcessEventKind.STARTED, process.id, process)
        elif (known.tag, known.label) != (process.tag, process.label):
            yield ProcessEvent(ProcessEventKind.UPDATED, process.id, process)
        if process.state is ProcessState.ENDED and (known is None or known.state is not ProcessState.ENDED):
            yield ProcessEvent(ProcessEventKind.ENDED, process.id, process)
