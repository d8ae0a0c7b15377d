#!/bin/sh
# Prints the path of a virtual environment with the Python SDK and its locked development dependencies. It is made once for each
# version of the lock file, below node_modules, where "npm ci" removes it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
lock=$root/sdk/python/requirements-dev.txt
venv=$root/node_modules/.cache/picod-python-$(cksum <"$lock" | cut -d' ' -f1)
if [ ! -e "$venv/complete" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$lock" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable "$root/sdk/python" >&2
  touch "$venv/complete"
fi
echo "$venv"
