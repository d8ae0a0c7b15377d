#!/bin/sh
# Builds the image without an image registry: the last stage of the Dockerfile, on a Debian that debootstrap makes from the
# packages that apt is configured for here, with a package that is made already. The result is in podman's storage.
set -eu

usage() {
  cat <<'TEXT'
usage: build-image.sh [options]

  --tag NAME         name of the image (default: picod)
  --base-tag NAME    name of the Debian image that it is built on (default: picod-debian)
  --folder DIR       a package as a folder (default: made here, by npm run package -- --folder)
  --cache DIR        keeps the Debian root for the next run (default: $PICOD_IMAGE_CACHE, else ~/.cache/picod)
  --mirror URL       Debian mirror (default: the one apt uses here)
  --archive FILE     also write the image as a tar file for `docker load` or `podman load`
  --rootfs FILE      also write the root file system as a tar file, for microVMs

Needs root, podman, debootstrap and apt. Where podman keeps its images is podman's configuration
(CONTAINERS_STORAGE_CONF, CONTAINERS_CONF).
TEXT
}

fail() {
  echo "build-image.sh: $*" >&2
  exit 1
}

# The Debian of the Dockerfile's base image.
suite=bookworm
root=$(cd "$(dirname "$0")/.." && pwd)
tag=picod
base_tag=picod-debian
folder=
cache=${PICOD_IMAGE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/picod}
mirror=
archive=
rootfs=

while [ $# -gt 0 ]; do
  case $1 in
    --help) usage; exit 0 ;;
    --tag | --base-tag | --folder | --cache | --mirror | --archive | --rootfs)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --tag) tag=$2 ;;
        --base-tag) base_tag=$2 ;;
        --folder) folder=$2 ;;
        --cache) cache=$2 ;;
        --mirror) mirror=$2 ;;
        --archive) archive=$2 ;;
        --rootfs) rootfs=$2 ;;
      esac
      shift 2
      ;;
    *) usage >&2; fail "unknown option: $1" ;;
  esac
done

missing=
[ "$(id -u)" = 0 ] || missing="$missing
  - root: debootstrap makes device nodes and files of other users"
for tool in podman debootstrap apt-get; do
  command -v "$tool" >/dev/null || missing="$missing
  - $tool: apt-get install $tool"
done
{ [ -z "$folder" ] || [ -x "$folder/picod" ]; } || missing="$missing
  - a package in $folder: npm ci && npm run package -- --folder $folder"
[ -z "$missing" ] || fail "cannot build the image; missing:$missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# A tar file rather than a directory: it is complete when it has its name, and unpacks with everybody's rights.
debian=$cache/$suite-$(dpkg --print-architecture).tar
if [ ! -e "$debian" ]; then
  if [ -z "$mirror" ]; then
    # shellcheck disable=SC2016 # apt's variable, not the shell's
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Codename: $suite" 'Component: main' | head -n 1)
    [ -n "$mirror" ] || fail "apt has no Debian $suite here (or apt-get update was never run): give --mirror URL"
  fi
  mkdir -p "$cache"
  debootstrap --variant=minbase "$suite" "$work/debian" "$mirror" >"$work/debootstrap.log" 2>&1 || {
    tail -n 20 "$work/debootstrap.log" >&2
    fail "debootstrap of $suite from $mirror failed"
  }
  # What registries' slim images leave out as well.
  rm -rf "$work"/debian/var/cache/apt/* "$work"/debian/var/lib/apt/lists/* "$work"/debian/usr/share/doc/* \
    "$work"/debian/usr/share/man/* "$work"/debian/usr/share/locale/*
  tar -C "$work/debian" --numeric-owner -cf "$debian.$$" .
  mv "$debian.$$" "$debian"
fi
podman import --quiet "$debian" "$base_tag" >/dev/null

# Stands in for the Dockerfile's first stage, which would need an image with npm.
mkdir -p "$work/build/opt"
if [ -n "$folder" ]; then
  cp -R "$folder" "$work/build/opt/picod"
else
  (cd "$root" && npm run --silent package -- --folder "$work/build/opt/picod")
fi
built=$("$work/build/opt/picod/picod" --version --json)
version=$(echo "$built" | sed -n 's/.*"version":"\([^"]*\)","commit".*/\1/p')
commit=$(echo "$built" | sed -n 's/.*"commit":"\([^"]*\)".*/\1/p')
# The docker format, because OCI's has no health check; chroot isolation, because one useradd needs no container around it.
podman build --quiet --layers=false --format docker --isolation chroot \
  --build-arg DEBIAN_IMAGE="localhost/$base_tag" --build-arg VERSION="$version" --build-arg COMMIT="$commit" \
  --build-context "build=$work/build" \
  --file "$root/Dockerfile" --tag "$tag" "$work/build" >/dev/null

if [ -n "$archive" ]; then
  rm -f "$archive"
  podman save --quiet --format docker-archive --output "$archive" "$tag"
fi
if [ -n "$rootfs" ]; then
  container=$(podman create --no-healthcheck "$tag")
  podman export --output "$rootfs" "$container"
  podman rm "$container" >/dev/null
fi
echo "$tag"
