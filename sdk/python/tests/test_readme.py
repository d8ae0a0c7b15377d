from __future__ import annotations

import re
from pathlib import Path

import pytest
from daemon import Daemon

README = Path(__file__).resolve().parents[1] / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_there_are_programs() -> None:
    assert PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_of_the_readme_run(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("PICOD_ACCESS_TOKEN", daemon.access_token)
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text("x,y\n")
    exec(program.replace("49983", str(daemon.port)).replace("/tmp/demo", f"{tmp_path}/demo"), {})
    if "copy.csv" in program:
        assert Path("copy.csv").read_text() == "x,y\n"
