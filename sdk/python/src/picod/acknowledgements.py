"""What a reader tells the daemon about the output that it has taken, so that the process waits for no more than it must."""

from __future__ import annotations

import threading

from .processes import OutputOffsets
from .v1 import process_pb2

# A word for each piece would cost more than the pieces; the daemon asks for one when the process waits for it.
_INTERVAL_BYTES = 128 * 1024


class Acknowledgements:
    """The words of one reader, of which one at a time is on its way. Those that are lost are made good by the next."""

    def __init__(self, process_id: str, follower_id: str, offsets: OutputOffsets) -> None:
        self._process_id = process_id
        self._follower_id = follower_id
        self._told_bytes = _total(offsets)
        self._on_its_way = False
        self._next: OutputOffsets | None = None
        self._changing = threading.Lock()

    def take(self, offsets: OutputOffsets, *, asked: bool) -> process_pb2.AcknowledgeOutputRequest | None:
        """Returns the word to be sent, if any, when the reader has got there; `answered` must follow."""
        with self._changing:
            behind_bytes = _total(offsets) - self._told_bytes
            if not self._follower_id or behind_bytes < (1 if asked else _INTERVAL_BYTES):
                return None
            self._next = offsets
            return self._send()

    def answered(self) -> process_pb2.AcknowledgeOutputRequest | None:
        """Returns the word that had to wait for the one before it."""
        with self._changing:
            self._on_its_way = False
            return self._send()

    def release(self) -> process_pb2.AcknowledgeOutputRequest | None:
        """Returns the last word: the reader does not come back."""
        return self._request(None) if self._follower_id else None

    def _send(self) -> process_pb2.AcknowledgeOutputRequest | None:
        if self._on_its_way or self._next is None:
            return None
        offsets, self._next, self._on_its_way = self._next, None, True
        self._told_bytes = _total(offsets)
        return self._request(offsets)

    def _request(self, offsets: OutputOffsets | None) -> process_pb2.AcknowledgeOutputRequest:
        return process_pb2.AcknowledgeOutputRequest(
            process=process_pb2.ProcessSelector(id=self._process_id),
            follower_id=self._follower_id,
            received=process_pb2.OutputOffsets(**vars(offsets)) if offsets else None,
            release=offsets is None,
        )


def _total(offsets: OutputOffsets) -> int:
    return offsets.stdout + offsets.stderr + offsets.pty
