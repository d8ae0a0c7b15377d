#!/bin/sh
# Runs the TypeScript tests and the daemon itself on another Node: "npm run test:node -- 26".
set -eu
version=${1:?which Node? for example 22 or 26}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Some tests run the daemon as another user.
chmod 755 "$work"
npm install --silent --no-audit --no-fund --prefix "$work" "node@$version"
PICOD_DIST=$work/dist node "$root/scripts/build.mjs"
cp "$work/node_modules/node/bin/node" "$work/dist/node"
export PICOD_BIN="$work/dist/picod"
cd "$root"
"$work/dist/node" --version
"$work/dist/node" node_modules/vitest/vitest.mjs run
