#!/bin/sh
# Prints the path of a virtual environment with the Python clients of others, locked, that the tests run against the daemon. It is made
# once for each version of the lock file, below node_modules, where "npm ci" removes it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
lock=$root/test/compat/requirements.txt
venv=$root/node_modules/.cache/picod-compat-$(cksum <"$lock" | cut -d' ' -f1)
if [ ! -e "$venv/complete" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$lock" >&2
  touch "$venv/complete"
fi
echo "$venv"
