"""TLS in front of a sandbox, where something terminates it and hands HTTP/2 to the daemon, and TLS of the daemon itself."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import proxy_to

from picod import PermissionDeniedError, RetryPolicy, TlsOptions, UnauthenticatedError, UnavailableError
from picod.agentcube import Sandbox


@dataclass
class Certificate:
    certificate: Path
    key: Path


def self_signed(directory: Path, name: str) -> Certificate:
    made = Certificate(directory / f"{name}.pem", directory / f"{name}.key")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
            *("-out", str(made.certificate), "-keyout", str(made.key)),
        ],
        check=True,
        capture_output=True,
    )
    return made


@contextmanager
def terminator(daemon: Daemon, server: Certificate, trusted_client: Certificate | None = None) -> Iterator[int]:
    """Yields the port on which TLS is accepted."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.certificate, server.key)
    context.set_alpn_protocols(["h2"])
    if trusted_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusted_client.certificate)
    with proxy_to(daemon.port, context) as proxy:
        yield proxy.port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("server"), "localhost")


@pytest.fixture(scope="module")
def client_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("client"), "client")


def test_trusts_the_given_roots(daemon: Daemon, connect: Connect, server: Certificate, tmp_path: Path) -> None:
    with terminator(daemon, server) as port:
        for ca in (server.certificate, str(server.certificate), server.certificate.read_bytes()):
            client = connect("localhost", port, daemon.access_token, tls=TlsOptions(ca=ca))
            assert client.execute_command("echo private") == "private\n"
            assert client.write_file("x", str(tmp_path / "file")).size == 1


def test_refuses_a_server_that_it_does_not_trust(
    daemon: Daemon, connect: Connect, server: Certificate, client_certificate: Certificate
) -> None:
    with terminator(daemon, server) as port:
        for tls in (True, TlsOptions(ca=client_certificate.certificate)):
            client = connect("localhost", port, daemon.access_token, tls=tls, retry=RetryPolicy(attempts=1))
            with pytest.raises(UnavailableError):
                client.stat("/")


def test_checks_the_name(daemon: Daemon, connect: Connect, server: Certificate) -> None:
    with terminator(daemon, server) as port:
        client = connect("127.0.0.1", port, daemon.access_token, tls=TlsOptions(ca=server.certificate), retry=None)
        with pytest.raises(UnavailableError):
            client.stat("/")
        tls = TlsOptions(ca=server.certificate, server_name="localhost")
        assert connect("127.0.0.1", port, daemon.access_token, tls=tls).stat("/").path == "/"


def test_presents_a_client_certificate(
    daemon: Daemon, connect: Connect, server: Certificate, client_certificate: Certificate
) -> None:
    with terminator(daemon, server, trusted_client=client_certificate) as port:
        anonymous = TlsOptions(ca=server.certificate)
        with pytest.raises(UnavailableError):
            connect("localhost", port, daemon.access_token, tls=anonymous, retry=None).stat("/")
        known = TlsOptions(server.certificate, client_certificate.certificate, client_certificate.key)
        assert connect("localhost", port, daemon.access_token, tls=known).stat("/").path == "/"


def test_speaks_tls_to_the_daemon(connect: Connect, server: Certificate, tmp_path: Path) -> None:
    arguments = ("--tls-cert", str(server.certificate), "--tls-key", str(server.key))
    with running_daemon(*arguments) as daemon:
        tls = TlsOptions(ca=server.certificate, server_name="localhost")
        client = connect("127.0.0.1", daemon.port, daemon.access_token, tls=tls)
        assert client.execute_command("echo private") == "private\n"
        content = b"x" * 3_000_000
        client.write_file(content, str(tmp_path / "file"))
        assert client.read_file(str(tmp_path / "file")) == content
        with client.start("read line; echo got $line", stdin=True) as process:
            process.write("it\n")
            assert process.wait().exit_code == 0
        with Sandbox(f"https://127.0.0.1:{daemon.port}", daemon.access_token, tls=tls) as sandbox:
            assert sandbox.execute_command("echo hello") == "hello\n"
        cleartext = connect("127.0.0.1", daemon.port, daemon.access_token, retry=None)
        with pytest.raises(UnavailableError):
            cleartext.stat("/")


def test_is_known_by_its_certificate(
    connect: Connect, server: Certificate, client_certificate: Certificate, tmp_path: Path
) -> None:
    callers = [{"name": "client", "certificate": "dns:client", "scopes": ["process", "process:read"]}]
    scopes = tmp_path / "scopes.json"
    scopes.write_text(json.dumps({"callers": callers}))
    scopes.chmod(0o600)
    arguments = ("--tls-cert", str(server.certificate), "--tls-key", str(server.key))
    authority = ("--tls-client-ca", str(client_certificate.certificate), "--scopes-file", str(scopes))
    with running_daemon(*arguments, *authority) as daemon:
        known = TlsOptions(server.certificate, client_certificate.certificate, client_certificate.key, "localhost")
        client = connect("127.0.0.1", daemon.port, "", tls=known)
        assert client.execute_command("echo known") == "known\n"
        with pytest.raises(PermissionDeniedError) as denied:
            client.stat("/")
        assert denied.value.reason == "SCOPE_MISSING"
        anonymous = connect("127.0.0.1", daemon.port, "", tls=TlsOptions(ca=server.certificate, server_name="localhost"))
        with pytest.raises(UnauthenticatedError):
            anonymous.stat("/")
