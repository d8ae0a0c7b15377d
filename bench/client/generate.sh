#!/bin/sh
# Writes gen/ from proto/. The plugins are the versions that go.mod names.
set -eu
cd "$(dirname "$0")"
PATH=$PWD/../../node_modules/.bin:$PATH
buf generate ../../proto --template buf.gen.yaml --path ../../proto/picod
