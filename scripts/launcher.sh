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
  OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSL_CERT_FILE SSL_CERT_DIR
# A health check inherits the token from its container and has no use for it: it would show it to every process of its user.
if [ "$1" = healthcheck ]; then unset PICOD_ACCESS_TOKEN; fi
# Node raises the soft limit of open files for itself; commands get this one back.
PICOD_SOFT_OPEN_FILES=$(ulimit -Sn)
export PICOD_SOFT_OPEN_FILES
exec "$node" @NODE_FLAGS@ "$dir/picod.cjs" "$@"
