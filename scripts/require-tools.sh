#!/bin/sh
# Makes sure that the tools the tests use are there: installs them where that is possible (Debian, as root), else names them.
set -eu
missing=
need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need bash bash
need chattr e2fsprogs
need curl curl
need git git
need mkfs.btrfs btrfs-progs
need mkfs.xfs xfsprogs
need mount mount
need openssl openssl
need perl perl
need setfattr attr
need setpriv util-linux
need tar tar
need python3 python3
python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || missing="$missing python3-venv"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing:$missing"
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of words
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "missing; please install the Debian packages:$missing" >&2
  exit 1
fi
