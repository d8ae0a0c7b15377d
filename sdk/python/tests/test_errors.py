from __future__ import annotations

import pickle
import socket
from pathlib import Path

import grpc
import pytest
from conftest import Connect
from daemon import Daemon

import picod
from picod import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    PicoDClient,
    PicoDError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from picod.error_details import decode_error_info

PUBLIC_ERRORS = [
    cls for cls in vars(picod).values() if isinstance(cls, type) and issubclass(cls, PicoDError) and cls is not PicoDError
]


def test_every_grpc_error_code_has_one_class() -> None:
    codes = [cls.code for cls in PUBLIC_ERRORS if PicoDError in cls.__bases__]
    assert len(codes) == len(set(codes))
    assert set(codes) == set(grpc.StatusCode) - {grpc.StatusCode.OK, grpc.StatusCode.UNKNOWN}


def test_errors_say_what_why_and_where(client: PicoDClient, tmp_path: Path) -> None:
    path = str(tmp_path / "missing")
    with pytest.raises(NotFoundError) as caught:
        client.stat(path)
    error = caught.value
    assert error.code is grpc.StatusCode.NOT_FOUND
    assert path in error.message
    assert error.reason.isupper()
    assert error.metadata["path"] == path
    assert str(error) == f"NOT_FOUND: {error.message}"


def test_errors_can_be_pickled(client: PicoDClient, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        client.stat(str(tmp_path / "missing"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.message, copy.reason, copy.metadata) == (
        NotFoundError,
        caught.value.message,
        caught.value.reason,
        caught.value.metadata,
    )


def test_errors_are_builtin_ones_where_python_has_the_idea() -> None:
    assert issubclass(DeadlineExceededError, TimeoutError)
    assert issubclass(UnavailableError, ConnectionError)
    assert issubclass(InvalidArgumentError, ValueError)
    assert not issubclass(NotFoundError, OSError)


@pytest.mark.parametrize("token", ["wrong", ""])
def test_every_method_needs_the_token(daemon: Daemon, connect: Connect, tmp_path: Path, token: str) -> None:
    client = connect("127.0.0.1", daemon.port, token)
    local = tmp_path / "local"
    local.write_bytes(b"x" * 3_000_000)
    remote = str(tmp_path / "remote")
    for call in (
        lambda: client.execute("true"),
        lambda: client.execute_command("true"),
        lambda: client.execute_commands(["true"]),
        lambda: client.run_code("python", ""),
        lambda: client.stat("/"),
        lambda: client.read_file("/etc/passwd"),
        lambda: client.write_file("x", remote),
        lambda: client.upload_file(local, remote),
        lambda: client.download_file("/etc/passwd", tmp_path / "copy"),
        lambda: client.start("true"),
        lambda: client.start("true", backpressure=True),
        lambda: client.attach("x"),
        lambda: client.get_process("x"),
        client.list_processes,
        client.watch_processes,
        lambda: client.update_process("x"),
        lambda: client.send_signal("TERM", "x"),
        lambda: client.stop_process("x"),
        lambda: client.delete_process("x"),
    ):
        with pytest.raises(UnauthenticatedError):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["local"]


def test_the_token_comes_from_the_environment(daemon: Daemon, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PICOD_ACCESS_TOKEN", daemon.access_token)
    assert connect("127.0.0.1", daemon.port).stat("/").path == "/"
    with pytest.raises(UnauthenticatedError):
        connect("127.0.0.1", daemon.port, "").stat("/")


@pytest.mark.parametrize("token", ["secret\n", " secret", "sécret", "sec\x00ret"])
def test_a_malformed_token_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ValueError, match="PICOD_ACCESS_TOKEN") as caught:
        PicoDClient("127.0.0.1", access_token=token)
    assert token.strip() not in str(caught.value)


def test_a_call_that_gets_no_answer_ends_with_its_deadline(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = connect("127.0.0.1", silent.getsockname()[1], "x", request_timeout=0.3, execute_slack=0.2)
        with pytest.raises(DeadlineExceededError):
            client.stat("/")
        with pytest.raises(DeadlineExceededError):
            client.execute("true", timeout=0.1)


def test_a_request_over_the_message_limit_is_refused(client: PicoDClient) -> None:
    with pytest.raises(ResourceExhaustedError):
        client.execute("cat > /dev/null", stdin=b"x" * 5_000_000)
    assert client.execute_command("echo fine") == "fine\n"


ERROR_INFO = b"\x0a\x05WHYYY\x12\x05picod\x1a\x0a\x0a\x04path\x12\x02/x"
TYPE_URL = b"type.googleapis.com/google.rpc.ErrorInfo"


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


STATUS = b"\x08\x05" + field(2, b"message") + field(3, field(1, b"other") + field(2, b"\xff"))
DETAIL = field(3, field(1, TYPE_URL) + field(2, ERROR_INFO))


def test_error_info_is_found_among_other_details() -> None:
    info = decode_error_info(STATUS + DETAIL)
    assert info is not None
    assert info == ("WHYYY", "picod", {"path": "/x"})


@pytest.mark.parametrize("length", range(len(STATUS + DETAIL)))
def test_truncated_details_never_hide_the_error(length: int) -> None:
    assert decode_error_info((STATUS + DETAIL)[:length]) is None


@pytest.mark.parametrize("details", [b"\xff" * 20, b"\x0b", b"\x1a\xff\xff\xff\xff\x7f", field(3, field(1, b"\xff"))])
def test_malformed_details_never_hide_the_error(details: bytes) -> None:
    assert decode_error_info(details) is None
