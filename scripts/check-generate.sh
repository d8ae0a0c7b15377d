#!/bin/sh
# Generates the code again, beside the committed one, and fails on any difference.
set -eu
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate --output "$fresh"
if ! diff -r "$fresh/src/gen" src/gen; then
  echo "src/gen is not what proto/ generates: run 'npm run generate' and commit the result" >&2
  exit 1
fi
