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
# What an image sets for its own Node programs must not load code into the daemon, change what it trusts or make it write files.
unset NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_DEBUG NODE_DEBUG_NATIVE NODE_V8_COVERAGE NODE_REPL_EXTERNAL_MODULE \
  NODE_REDIRECT_WARNINGS NODE_COMPILE_CACHE NODE_TLS_REJECT_UNAUTHORIZED NODE_USE_ENV_PROXY NODE_USE_SYSTEM_CA \
  OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSL_CERT_FILE SSL_CERT_DIR PICOD_LIBRARIES
# A health check inherits the token from its container and has no use for it: it would show it to every process of its user.
if [ "$1" = healthcheck ]; then unset PICOD_ACCESS_TOKEN; fi
# Node raises the soft limit of open files for itself; commands get this one back.
PICOD_SOFT_OPEN_FILES=$(ulimit -Sn)
export PICOD_SOFT_OPEN_FILES
# The heap gets a quarter of what the cgroup allows (version 2 or 1, those above it included): the daemon must not take from its commands
# the memory that they are there for. Nothing is forked for it.
heap=@MAX_HEAP_MIB@
lower() {
  [ -r "$1" ] || return 0
  read -r limit <"$1" || return 0
  # "max" is none, and none is a number of 19 digits where the kernel has no word for it.
  case $limit in '' | *[!0-9]* | ????????????????*) return 0 ;; esac
  mib=$((limit / 1048576 / 4))
  [ "$mib" -ge "$heap" ] || heap=$mib
}
[ -r /proc/self/cgroup ] && while IFS=: read -r _ controllers path; do
  case ,$controllers, in
    ,,) mount=/sys/fs/cgroup file=memory.max ;;
    *,memory,*) mount=/sys/fs/cgroup/memory file=memory.limit_in_bytes ;;
    *) continue ;;
  esac
  while :; do
    lower "$mount$path/$file"
    case $path in */*) path=${path%/*} ;; *) break ;; esac
  done
  # Without complaints, and without /dev/null, which a root without one would get as a file.
done 2>&- </proc/self/cgroup
[ "$heap" -ge @MIN_HEAP_MIB@ ] || heap=@MIN_HEAP_MIB@
exec "$node" @NODE_FLAGS@ --max-old-space-size="$heap" "$dir/picod.cjs" "$@"
