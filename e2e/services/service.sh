#!/usr/bin/env bash
# service.sh NAME have|install|up|check|env|status|restart|down
#   have     succeeds if nothing needs to be downloaded or built
#   install  download or build the requirements of the service (into $SVC_HOME/dist)
#   up       install, start on loopback, wait until ready, print its env
#   check    one real write, and one query that reads it
#   env      the variables the tests read
#            ("up" selects free ports; SVC_PORT=n sets the first one)
#   status   pid and memory
#   restart  restart in place, if supported: connections end, and stored data stays
#   down     stop by recorded pid, remove its run folder (KEEP=1 keeps it)
set -euo pipefail
NAME=${1:?service name}; CMD=${2:?have|install|up|check|env|status|restart|down}
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -f "$HERE/d/$NAME.sh" ] || { echo "services: $(cd "$HERE/d" && ls | sed 's/\.sh$//' | tr '\n' ' ')" >&2; exit 2; }
RUN=$SVC_RUN/$NAME
svc_stop() { [ -f "$RUN/pid" ] && stop_pid "$(cat "$RUN/pid")"; true; }
PORT=${SVC_PORT:-$(port_base 8)} # each service uses PORT and a few after it
. "$HERE/d/$NAME.sh"
# install: only one at a time per machine, so that parallel runs share the work
install() { mkdir -p "$DIST"; (flock 9; svc_install) 9>>"$DIST/.lock-$NAME"; }
case $CMD in
  have) PENSTOCK_TEST_INSTALL=0; svc_install ;;
  install) install ;;
  up)
    if alive; then echo "SVC_RUN=$SVC_RUN $(svc_env)"; exit; fi
    install
    rm -rf "$RUN"; mkdir -p "$RUN"; : >"$RUN/out.log"; echo "$PORT" >"$RUN/port"
    t=$(date +%s.%N); svc_start; wait_ready
    echo "# $NAME ready in $(awk -v a="$t" -v b="$(date +%s.%N)" 'BEGIN{printf "%.1f", b-a}') s, $(usage "$(cat "$RUN/pid")")" >&2
    echo "SVC_RUN=$SVC_RUN $(svc_env)" ;;
  check) alive || die "not running"; svc_check >/dev/null; echo "$NAME: check ok" ;; # not "svc_check &&", which would disable set -e inside it
  env) svc_env ;;
  status) alive && echo "$NAME pid $(cat "$RUN/pid") $(usage "$(cat "$RUN/pid")")" || { echo "$NAME down"; exit 3; } ;;
  restart) alive || die "not running"; svc_restart ;;
  down) svc_stop; [ -n "${KEEP:-}" ] || rm -rf "$RUN" ;;
  *) echo "unknown command $CMD" >&2; exit 2 ;;
esac
