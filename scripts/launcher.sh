#!/bin/sh
# Starts picod with its own Node where it lies beside this file, else with the one on the PATH.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=${self%/*}/$target ;;
  esac
done
case $self in */*) dir=${self%/*} ;; *) dir=. ;; esac
node=$dir/node
[ -x "$node" ] || node=node
# What an image sets for its own Node programs must not load code into the daemon.
unset NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_DEBUG NODE_V8_COVERAGE NODE_REPL_EXTERNAL_MODULE
# Node raises the soft limit of open files for itself; commands get this one back.
PICOD_SOFT_OPEN_FILES=$(ulimit -Sn)
export PICOD_SOFT_OPEN_FILES
# SIGUSR1 would open a debugger to every process of this user.
exec "$node" --disable-sigusr1 --max-old-space-size=512 --v8-pool-size=2 --no-warnings "$dir/picod.mjs" "$@"
