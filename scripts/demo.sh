#!/bin/sh
# Builds picod, starts it on a free port of this machine, runs the machine-learning workflow against it from Python, and stops it.
# Everything it makes is in a temporary directory that is removed at the end.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/scripts/require-tools.sh"
work=$(mktemp -d)
daemon=
finish() {
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon"; } || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

echo "building the daemon"
npm --prefix "$root" run --silent build
echo "installing the Python SDK, and what it takes to load the model that will be downloaded"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$root/sdk/python" -r "$root/examples/ml_requirements.txt"

PICOD_ACCESS_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export PICOD_ACCESS_TOKEN
"$root/dist/picod" --host 127.0.0.1 --port 0 --log-format json >"$work/picod.log" &
daemon=$!
port=
while [ -z "$port" ]; do
  kill -0 "$daemon" 2>/dev/null || { cat "$work/picod.log"; exit 1; }
  port=$(sed -n 's/.*"port":\([0-9]*\).*"msg":"server listening".*/\1/p' "$work/picod.log")
  [ -n "$port" ] || sleep 0.05
done
echo "picod listens on port $port"
"$work/venv/bin/python" "$root/examples/ml_workflow.py" --host 127.0.0.1 --port "$port" --workdir "$work/sandbox"
