"""Input to a long-lived process in pieces, each of which arrives once although its answer may be lost."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from .errors import ResourceExhaustedError
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


def input_request(process_id: str, piece: bytes) -> process_pb2.SendInputRequest:
    """Builds the request for a piece, with a key of its own: however often it is sent, the piece arrives once."""
    return process_pb2.SendInputRequest(
        process=process_pb2.ProcessSelector(id=process_id), data=piece, write_id=secrets.token_hex(12)
    )
