"""Input to a long-lived process in pieces, each of which arrives once although its answer may be lost."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import AbortedError, ResourceExhaustedError
from .requests import to_bytes
from .v1 import process_pb2

# The daemon lets 1 MiB wait for the process.
_PIECE_BYTES = 256 * 1024

_QUEUE_FULL = "INPUT_QUEUE_FULL"


def input_pieces(data: str | bytes) -> Iterator[bytes]:
    """Splits what is to be written; nothing is one empty piece, so that its errors are seen."""
    content = to_bytes(data)
    for start in range(0, max(1, len(content)), _PIECE_BYTES):
        yield content[start : start + _PIECE_BYTES]


def queue_delays_seconds() -> Iterator[float]:
    """Yields the waits for a process that does not read its input."""
    delay = 0.005
    while True:
        yield delay
        delay = min(delay * 2, 0.25)


def is_queue_full(error: ResourceExhaustedError) -> bool:
    """The process has not read what it was sent before; nothing of this piece was accepted."""
    return error.reason == _QUEUE_FULL


class InputCursor:
    """The place of one writer in the input of a process.

    Several writers may share one input, so a piece is sent without its offset and goes behind whatever has arrived. Only the
    repetition of a piece says its offset: then the daemon leaves out what it has got already.
    """

    def __init__(self, process_id: str, input_bytes: int) -> None:
        self._process_id = process_id
        self._input_bytes = input_bytes

    def request(self, piece: bytes, repeated: bool) -> process_pb2.SendInputRequest:
        """Builds the request for the next piece."""
        return process_pb2.SendInputRequest(
            process=process_pb2.ProcessSelector(id=self._process_id),
            data=piece,
            offset=self._input_bytes if repeated else None,
        )

    def accepted(self, input_bytes: int) -> None:
        """Takes the answer."""
        self._input_bytes = input_bytes

    def has_arrived(self, piece: bytes, input_bytes: int) -> bool:
        """Tells, after a lost answer, from all that the process has got whether the piece is in it.

        Raises:
            AbortedError: Somebody else has written meanwhile, so that nobody can tell.
        """
        if input_bytes == self._input_bytes:
            return False
        if input_bytes == self._input_bytes + len(piece):
            self._input_bytes = input_bytes
            return True
        self._input_bytes = input_bytes
        raise AbortedError(
            f"cannot repeat a write to process {self._process_id} whose answer was lost: others have written meanwhile"
        )
