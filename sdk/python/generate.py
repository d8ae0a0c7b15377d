"""Regenerates src/picod/v1 from the proto files: `python generate.py [--out DIR]`.

Needs exactly the grpcio-tools of requirements-dev.txt. That version is old on purpose: its output runs on protobuf 5.27 and
grpcio 1.66 and on everything newer, while output of newer tools refuses older runtimes.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

GRPCIO_TOOLS_VERSION = "1.66.2"
HERE = Path(__file__).resolve().parent
PROTO_ROOT = HERE.parents[1] / "proto"


def generate(out: Path) -> None:
    """Writes the modules of picod/v1 below `out`, with the type stubs of their messages."""
    if version("grpcio-tools") != GRPCIO_TOOLS_VERSION:
        raise SystemExit(f"grpcio-tools {GRPCIO_TOOLS_VERSION} is required, found {version('grpcio-tools')}")
    sources = sorted(path.relative_to(PROTO_ROOT).as_posix() for path in PROTO_ROOT.glob("picod/v1/*.proto"))
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={PROTO_ROOT}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            f"--python_out={out}",
            f"--pyi_out={out}",
            f"--grpc_python_out={out}",
            *sources,
        ]
    )
    if status != 0:
        raise SystemExit(f"protoc failed with status {status}")
    (out / "picod" / "v1" / "__init__.py").write_text('"""Generated from proto/picod/v1 by generate.py; do not edit."""\n')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "src", help="directory that holds the package (default: src)")
    generate(parser.parse_args().out)
