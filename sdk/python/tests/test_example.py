from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemon import REPOSITORY, Daemon

EXAMPLES = REPOSITORY / "examples"


def run_example(daemon: Daemon, *arguments: str, name: str = "ml_workflow.py") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--port", str(daemon.port), *arguments],
        env={**os.environ, "PICOD_ACCESS_TOKEN": daemon.access_token},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return tmp_path / "workdir"


def test_the_model_finds_the_relation_and_nothing_is_left(daemon: Daemon, workdir: Path) -> None:
    completed = run_example(daemon, "--rows", "5000", "--workdir", str(workdir))
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.endswith("The model found the relation\n")
    assert "loaded in the sandbox" in completed.stdout or "loaded here" in completed.stdout
    assert not workdir.exists()


def test_says_which_python_is_missing(daemon: Daemon, workdir: Path) -> None:
    completed = run_example(daemon, "--python", "python-nowhere", "--workdir", str(workdir))
    assert completed.returncode == 1
    assert "python-nowhere" in completed.stderr
    assert not workdir.exists()


def test_leaves_a_directory_alone_that_it_did_not_make(daemon: Daemon, workdir: Path) -> None:
    workdir.mkdir()
    completed = run_example(daemon, "--workdir", str(workdir))
    assert completed.returncode == 1
    assert "File exists" in completed.stderr
    assert workdir.is_dir()


def test_a_server_runs_is_used_and_is_stopped(daemon: Daemon) -> None:
    completed = run_example(daemon, name="dev_server.py")
    assert completed.returncode == 0, completed.stderr
    assert "Hello from the sandbox\n" in completed.stdout
    assert "GET / HTTP/1.1" in completed.stdout
    assert "CANCELLED" in completed.stdout
