# Shared helpers for service.sh and the files under d/.
# $SVC_HOME/dist  downloads and builds, which can be kept and shared (default: the user's cache folder)
# $SVC_RUN/NAME   data, logs, ports, pid; removed by "down". Parallel runs differ only in SVC_RUN.
SVC_HOME=${SVC_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/services}
SVC_RUN=${SVC_RUN:-${TMPDIR:-/tmp}/penstock-services.$(id -u)}
DIST=$SVC_HOME/dist
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
START_TIMEOUT=${SVC_START_TIMEOUT:-180}
MVN_COPY=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy

die() { echo "$NAME: $*" >&2; exit 1; }
# may_install: whether missing requirements may be downloaded, built or installed
may_install() { [ "${PENSTOCK_TEST_INSTALL:-1}" != 0 ] || die "is not installed here (PENSTOCK_TEST_INSTALL=1 allows the installation)"; }
# need COMMAND PACKAGE: for commands that download or build
need() { may_install; command -v "$1" >/dev/null || die "needs '$1' ($2)"; }

# port_base N: the first of N consecutive free loopback ports, below the kernel's
# ephemeral range. Kept in $RUN/port while the service is up.
port_base() {
  [ -f "$RUN/port" ] && { cat "$RUN/port"; return; }
  python3 - "$1" <<'P'
import random, socket, sys
n = int(sys.argv[1])
for _ in range(500):
    base, held = random.randrange(11000, 31000), []
    try:
        for i in range(n):
            s = socket.socket(); held.append(s); s.bind(("127.0.0.1", base + i))
        print(base); break
    except OSError:
        continue
    finally:
        [s.close() for s in held]
else:
    sys.exit("no free ports")
P
}

# apt_need COMMAND PACKAGE: installs a Debian package if its command is missing.
# It respects policy-rc.d; the caller must stop daemons that started anyway.
apt_need() {
  command -v "$1" >/dev/null && return
  may_install
  [ "$(id -u)" = 0 ] || die "command $1 is missing: apt-get install --no-install-recommends $2"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$2" >&2
}

# maven_copy GROUP:ARTIFACT:VERSION:TYPE[:CLASSIFIER]: downloads one artifact with
# the normal client, which uses mirrors and credentials in settings.xml.
maven_copy() {
  need mvn maven
  mkdir -p "$DIST/dl"
  mvn -q -B "$MVN_COPY" -Dartifact="$1" -DoutputDirectory="$DIST/dl" >&2
}

# java_home MIN: a JDK of at least that feature version, JAVA_HOME first.
java_home() {
  local j v
  for j in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
    [ -n "$j" ] && [ -x "$j/bin/java" ] || continue
    v=$("$j/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
    [ "${v:-0}" -ge "$1" ] && { echo "$j"; return; }
  done
  die "needs a JDK $1 or newer"
}

# as_user: command prefix that drops root, for servers that refuse to run as root.
as_user() { [ "$(id -u)" = 0 ] && echo "setpriv --reuid=nobody --regid=nogroup --clear-groups"; true; }
# readable FOLDER: a path that the unprivileged user can read. Root's cache is private, so this creates links to its files in $RUN
readable() {
  if [ "$(id -u)" != 0 ] || $(as_user) test -r "$1"; then echo "$1"; return; fi
  [ -d "$RUN/dist" ] || cp -rl "$1" "$RUN/dist" 2>/dev/null || { rm -rf "$RUN/dist"; cp -r "$1" "$RUN/dist"; }
  echo "$RUN/dist"
}
own() { [ "$(id -u)" != 0 ] || chown -R nobody:nogroup "$@"; }

# spawn COMMAND...: runs it in the background in $RUN, with output in $RUN/out.log
# and pid in $RUN/pid. It has its own session, so that Ctrl-C does not reach it.
spawn() {
  (cd "$RUN" && exec setsid "$@" >>"$RUN/out.log" 2>&1 </dev/null & echo $! >"$RUN/pid")
}

alive() { [ -f "$RUN/pid" ] && kill -0 "$(cat "$RUN/pid")" 2>/dev/null; }

wait_ready() {
  local end=$((SECONDS + START_TIMEOUT))
  until svc_ready >/dev/null 2>&1; do
    alive || { tail -20 "$RUN/out.log" >&2; die "ended before it was ready"; }
    [ $SECONDS -lt $end ] || { tail -20 "$RUN/out.log" >&2; die "not ready in ${START_TIMEOUT}s"; }
    sleep 0.5
  done
}

# stop: sends TERM to the recorded pid, and KILL only to its session after 20 s.
stop_pid() {
  local p=$1 i
  kill "$p" 2>/dev/null || return 0
  for i in $(seq 100); do kill -0 "$p" 2>/dev/null || return 0; sleep 0.2; done
  kill -9 -- "-$p" 2>/dev/null || kill -9 "$p" 2>/dev/null || true
}

# tree PID: the pid and all its descendants.
tree() { local c; echo "$1"; for c in $(cat /proc/"$1"/task/*/children 2>/dev/null); do tree "$c"; done; }
# usage PID: resident memory and CPU time of the tree so far. Compare CPU times
# between machines, because wall time depends on load.
usage() {
  local p; for p in $(tree "$1"); do
    awk -v hz="$(getconf CLK_TCK)" 'FNR==NR{sub(/.*\) /,""); c=($12+$13+$14+$15)/hz; next} /^VmRSS/{r=$2/1024} END{print r, c}' \
      /proc/$p/stat /proc/$p/status 2>/dev/null
  done | awk '{r+=$1;c+=$2}END{printf "rss %d MiB, cpu %.1f s\n", r, c}'
}

# get URL [curl args]: loopback only, never through a proxy, fail on HTTP >= 400.
get() { local u=$1; shift; curl -sS --noproxy '*' -m 60 --fail-with-body "$@" "$u"; }
# expect PATTERN: passes stdin through, and fails unless it contains the pattern.
expect() { local t; t=$(cat); grep -q -- "$1" <<<"$t" || { echo "$NAME: no '$1' in: ${t:0:600}" >&2; return 1; }; }
# retry N COMMAND...: for reads that lag behind a write.
retry() { local n=$1 i; shift; for i in $(seq "$n"); do "$@" 2>/dev/null && return 0; sleep 1; done; "$@"; }
