"""Decodes the google.rpc.ErrorInfo that travels in the `grpc-status-details-bin` trailer.

By hand, because generated google.rpc modules would collide with googleapis-common-protos in the process-wide descriptor pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


class ErrorInfo(NamedTuple):
    """What google.rpc.ErrorInfo holds."""

    reason: str
    domain: str
    metadata: dict[str, str]


def decode_error_info(status: bytes) -> ErrorInfo | None:
    """Finds the first ErrorInfo among the details of a serialised google.rpc.Status; None if there is none or it is malformed."""
    try:
        for number, detail in _fields(status):
            if number == 3 and isinstance(detail, bytes):
                fields = _last_values(detail)
                if _text(fields.get(1)).endswith("/google.rpc.ErrorInfo"):
                    return _error_info(_bytes(fields.get(2)))
    except (IndexError, ValueError):
        pass  # Details are extra: an error that cannot be decoded must still be raised with its code and message.
    return None


def _error_info(message: bytes) -> ErrorInfo:
    fields = _last_values(message)
    entries = (_last_values(_bytes(value)) for number, value in _fields(message) if number == 3)
    metadata = {_text(entry.get(1)): _text(entry.get(2)) for entry in entries}
    return ErrorInfo(_text(fields.get(1)), _text(fields.get(2)), metadata)


def _last_values(message: bytes) -> dict[int, int | bytes]:
    return dict(_fields(message))


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _text(value: int | bytes | None) -> str:
    return _bytes(value).decode("utf-8")


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields field number and raw value in wire order: https://protobuf.dev/programming-guides/encoding/."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire_type = key & 7
        if wire_type == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if wire_type == _LENGTH_DELIMITED:
            length, position = _varint(message, position)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire_type}")
        if position + length > len(message):
            raise ValueError("truncated field")
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
