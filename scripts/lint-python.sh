#!/bin/sh
# Lints and type-checks the Python SDK and the Python examples.
set -eu
cd "$(dirname "$0")/../sdk/python"
bin=$(sh ../../scripts/python-venv.sh)/bin
"$bin/ruff" check --quiet --config pyproject.toml . ../../examples ../../bench/clients
"$bin/ruff" format --quiet --check --config pyproject.toml . ../../examples ../../bench/clients
"$bin/mypy" --no-error-summary
