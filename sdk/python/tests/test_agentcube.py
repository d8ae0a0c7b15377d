from __future__ import annotations

from pathlib import Path

import pytest
from daemon import Daemon

from picod import CommandError, TlsOptions
from picod.agentcube import Sandbox


def test_the_example_of_agentcube_runs(daemon: Daemon, tmp_path: Path) -> None:
    local, copy, folder = tmp_path / "data.csv", tmp_path / "copy.csv", tmp_path / "sandbox"
    local.write_text("a,b\n1,2\n")
    sandbox = Sandbox(f"127.0.0.1:{daemon.port}", daemon.access_token)
    sandbox.write_file(content="pandas\nnumpy\n", remote_path=f"{folder}/requirements.txt")
    assert sandbox.execute_command(f"wc -l < {folder}/requirements.txt").strip() == "2"
    sandbox.upload_file(local_path=str(local), remote_path=f"{folder}/data.csv")
    assert sandbox.run_code(language="python", code=f"print(open('{folder}/data.csv').read())") == "a,b\n1,2\n\n"
    sandbox.download_file(remote_path=f"{folder}/data.csv", local_path=str(copy))
    assert copy.read_text() == local.read_text()
    with pytest.raises(CommandError):
        sandbox.execute_command("exit 3")
    sandbox.stop()
    with pytest.raises(ValueError, match="closed"):
        sandbox.execute_command("true")


@pytest.mark.parametrize(
    "address", ["127.0.0.1:{port}", "localhost:{port}", "http://127.0.0.1:{port}", "http://127.0.0.1:{port}/"]
)
def test_an_address_may_be_a_url(daemon: Daemon, address: str) -> None:
    with Sandbox(address.format(port=daemon.port), daemon.access_token) as sandbox:
        assert sandbox.execute_command("echo hi") == "hi\n"


def test_https_means_tls(daemon: Daemon) -> None:
    with Sandbox("https://[::1]:8443", "", retry=None) as sandbox:
        assert sandbox._connection.target == "[::1]:8443"
        assert sandbox._connection.credentials is not None
    with Sandbox("https://example.test", "", tls=TlsOptions(server_name="other")) as sandbox:
        assert sandbox._connection.target == "example.test:49983"


@pytest.mark.parametrize("address", ["", ":80", "a:b", "ftp://a", "http://a/path", "::1", "a:99999", "http://user@a:b"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        Sandbox(address)
