from __future__ import annotations

import filecmp
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_committed_stubs_are_those_of_the_proto_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "generate.py", "--out", tmp_path], check=True)
    committed, generated = ROOT / "src" / "picod" / "v1", tmp_path / "picod" / "v1"
    names = sorted(path.name for path in generated.iterdir())
    assert names == sorted(path.name for path in committed.iterdir() if path.name != "__pycache__")
    _, different, failed = filecmp.cmpfiles(committed, generated, names, shallow=False)
    assert (different, failed) == ([], []), "run generate.py"
