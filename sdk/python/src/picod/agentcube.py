"""A sandbox in the words of AgentCube: `from picod.agentcube import Sandbox`."""

from __future__ import annotations

import re
from typing import Any

from .client import PicoDClient
from .connection import DEFAULT_PORT

_ADDRESS = re.compile(r"(?:(https?)://)?(\[[^\]/]+\]|[^:/\[\]]+)(?::(\d{1,5}))?/?")


class Sandbox(PicoDClient):
    """A sandbox that is there already, with the methods of `PicoDClient`.

    AgentCube's control plane makes and ends sandboxes; what this object does ends with the daemon inside. Relative paths, and
    commands, begin where the daemon's `--workdir` says.

    Args:
        address: Where its daemon listens: "10.0.0.7", "10.0.0.7:49983", "[::1]:49983", or a URL; https means TLS. Default
            port: 49983.
        access_token: The daemon's token. Default: the environment variable PICOD_ACCESS_TOKEN; an empty string sends none.
        options: The other arguments of `PicoDClient`, by name.

    Raises:
        ValueError: The address, or what `PicoDClient` checks, is malformed.
        OSError: As `PicoDClient`.
    """

    def __init__(self, address: str, access_token: str | None = None, **options: Any) -> None:  # noqa: ANN401 (those of PicoDClient)
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise ValueError(f"address must be of the form host, host:port or http://host:port: {address!r}")
        scheme, host, port = match.groups()
        if scheme == "https":
            options.setdefault("tls", True)
        super().__init__(host.strip("[]"), int(port or DEFAULT_PORT), access_token, **options)

    def __enter__(self) -> Sandbox:
        return self

    def stop(self) -> None:
        """Ends the use of the sandbox, as `close` does. The sandbox itself is ended by who made it, the control plane."""
        self.close()
