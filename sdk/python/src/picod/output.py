"""The output of a long-lived process on its way to a reader: where the reader is, and how its bytes become text."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Literal, cast

from .errors import DataLossError
from .processes import OutputOffsets, ProcessResult, process_result
from .v1 import process_pb2

StreamName = Literal["stdout", "stderr", "pty"]

_NAMES: dict[int, StreamName] = {
    process_pb2.OUTPUT_STREAM_STDOUT: "stdout",
    process_pb2.OUTPUT_STREAM_STDERR: "stderr",
    process_pb2.OUTPUT_STREAM_PTY: "pty",
}


@dataclass(frozen=True)
class ProcessOutput:
    """One piece of one output stream; or, with `trimmed_bytes`, the news that a piece is missing.

    The pieces of a stream follow each other without overlap. The order among different streams is not kept.
    """

    stream: StreamName
    data: bytes
    """Empty when `trimmed_bytes` is not 0."""
    offset: int
    """Position of the first byte of `data` in its stream, in bytes since the start of the process."""
    trimmed_bytes: int = 0
    """Bytes right before `offset` that the daemon no longer kept."""

    @property
    def end(self) -> int:
        """Position behind the last byte."""
        return self.offset + len(self.data)


class OutputCursor:
    """The place of one reader in the output of a process."""

    def __init__(self, offsets: OutputOffsets) -> None:
        self._positions: dict[StreamName, int] = {"stdout": offsets.stdout, "stderr": offsets.stderr, "pty": offsets.pty}
        self.result: ProcessResult | None = None
        """How the process ended, once the reader has got that far."""

    @property
    def offsets(self) -> OutputOffsets:
        """The first bytes that have not been read."""
        return OutputOffsets(**self._positions)

    def accept(self, event: process_pb2.ProcessEvent) -> ProcessOutput | None:
        """Takes the next event and returns what is in it for the reader, if anything.

        Raises:
            DataLossError: The piece is not the next one of its stream.
        """
        kind = event.WhichOneof("event")
        if kind == "output":
            return self._accept_output(event.output)
        if kind == "trimmed":
            stream = _NAMES[event.trimmed.stream]
            self._advance(stream, getattr(event.trimmed, "from"), event.trimmed.to)
            return ProcessOutput(stream, b"", event.trimmed.to, event.trimmed.to - getattr(event.trimmed, "from"))
        if kind == "ended":
            self.result = process_result(event.ended)
        return None

    def _accept_output(self, output: process_pb2.ProcessOutput) -> ProcessOutput:
        stream = cast(StreamName, output.WhichOneof("output"))
        data: bytes = getattr(output, stream)
        self._advance(stream, output.offset, output.offset + len(data))
        return ProcessOutput(stream, data, output.offset)

    def _advance(self, stream: StreamName, start: int, end: int) -> None:
        if start != self._positions[stream]:
            raise DataLossError(f"wrong output: {stream} goes on at offset {start}, expected {self._positions[stream]}")
        self._positions[stream] = end


class OutputDecoder:
    """Decodes UTF-8 across the borders of pieces, each stream for itself; what is not UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        make_decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: make_decoder("replace") for name in _NAMES.values()}

    def decode(self, output: ProcessOutput) -> str:
        """Returns the characters that are complete.

        Raises:
            DataLossError: Something is missing before them.
        """
        decoder = self._decoders[output.stream]
        if output.trimmed_bytes:
            decoder.reset()
            raise DataLossError(
                f"incomplete output: {output.trimmed_bytes} bytes of {output.stream} before offset {output.offset} are no"
                " longer kept (read faster, or use backpressure=True)",
                reason="OUTPUT_TRIMMED",
                metadata={"stream": output.stream, "offset": str(output.offset)},
            )
        return decoder.decode(output.data)

    def finish(self, stream: StreamName | None) -> str:
        """Returns what is left of incomplete characters at the end of the output."""
        names = self._decoders if stream is None else (stream,)
        return "".join(self._decoders[name].decode(b"", True) for name in names)
