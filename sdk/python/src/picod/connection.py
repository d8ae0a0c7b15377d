"""Where and how to connect: address, token, TLS and channel arguments, the same for both clients."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Union

import grpc

from ._version import __version__

DEFAULT_PORT = 49983
TOKEN_VARIABLE = "PICOD_ACCESS_TOKEN"  # noqa: S105 (its name, not its value)

_MIB = 1024 * 1024
# The daemon keeps at most 64 MiB of each of two streams, and replacing what is not UTF-8 makes three bytes of one.
_MAX_RECEIVE_BYTES = 2 * 3 * 64 * _MIB + _MIB

INSTANCE_KEY = "x-picod-instance"
"""Names the run of the daemon that answers; in a request, the one that is meant."""

Metadata = tuple[tuple[str, str], ...]

ChannelArguments = tuple[tuple[str, Union[str, int]], ...]

_CHANNEL_ARGUMENTS: ChannelArguments = (
    ("grpc.primary_user_agent", f"picod-python/{__version__}"),
    ("grpc.max_receive_message_length", _MAX_RECEIVE_BYTES),
    # Nothing below this package repeats a call: no transparent retries, and no retry policy out of a DNS TXT record.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # close() then closes the connection, and clients do not share each other's reconnect backoff.
    ("grpc.use_local_subchannel_pool", 1),
    # A sandbox that has just been started answers soon; gRPC's own first backoff is a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # A command without timeout has no deadline: only pings tell that the sandbox is gone.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
)


@dataclass(frozen=True)
class TlsOptions:
    """TLS for the connection. All files and byte strings are PEM.

    Args:
        ca: Root certificates to trust: PEM bytes or the path of a file. Default: those that come with gRPC.
        client_certificate: Certificate chain of the client, if the server asks for one; needs `client_key`.
        client_key: Private key of the client.
        server_name: Name to expect in the server's certificate instead of `host`.
    """

    ca: bytes | str | os.PathLike[str] | None = None
    client_certificate: bytes | str | os.PathLike[str] | None = None
    client_key: bytes | str | os.PathLike[str] | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("client_certificate and client_key belong together: only one of them was given")


@dataclass(frozen=True)
class Connection:
    """Everything a channel is made of."""

    target: str
    credentials: grpc.ChannelCredentials | None
    arguments: ChannelArguments
    metadata: Metadata


def resolve_connection(
    host: str,
    port: int,
    access_token: str | None,
    tls: bool | TlsOptions,
    channel_arguments: ChannelArguments,
) -> Connection:
    """Completes and checks what a client was given.

    Raises:
        ValueError: The port or the token is malformed. The message never holds the token.
        OSError: A certificate file cannot be read.
    """
    if not 0 < port < 65536:
        raise ValueError(f"port must be between 1 and 65535: {port}")
    options = TlsOptions() if tls is True else tls or None
    overridden = {name for name, _ in channel_arguments}
    arguments = tuple(argument for argument in _CHANNEL_ARGUMENTS if argument[0] not in overridden) + channel_arguments
    if options and options.server_name:
        arguments += (("grpc.ssl_target_name_override", options.server_name),)
    return Connection(
        target=f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}",
        credentials=_credentials(options) if options else None,
        arguments=arguments,
        metadata=_metadata(os.environ.get(TOKEN_VARIABLE, "") if access_token is None else access_token),
    )


def open_channel(connection: Connection) -> grpc.Channel:
    """Opens a channel; it connects with the first call."""
    if connection.credentials:
        return grpc.secure_channel(connection.target, connection.credentials, connection.arguments)
    return grpc.insecure_channel(connection.target, connection.arguments)


def instance_in(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """Returns the run of the daemon that an answer names; empty when it names none."""
    found = dict(metadata or ()).get(INSTANCE_KEY, "")
    return found if isinstance(found, str) else ""


def _metadata(token: str) -> Metadata:
    if not token:
        return ()
    if not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError(
            f"the access token (argument access_token or {TOKEN_VARIABLE}) must be printable ASCII without surrounding"
            " white space; does it end with a newline?"
        )
    return (("authorization", f"Bearer {token}"),)


def _credentials(options: TlsOptions) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_pem(options.ca),
        private_key=_pem(options.client_key),
        certificate_chain=_pem(options.client_certificate),
    )


def _pem(source: bytes | str | os.PathLike[str] | None) -> bytes | None:
    return source if source is None or isinstance(source, bytes) else Path(source).read_bytes()
