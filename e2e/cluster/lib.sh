# shellcheck shell=bash disable=SC2034
# Shared by the scripts of this folder. Sourced, not run.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/penstock
bin=$(realpath -m "${CLUSTER_BIN:-$cache/cluster-bin}")                       # build.sh's output
images=$(realpath -m "${CLUSTER_IMAGES:-$cache/cluster-images}")              # images.sh's output, and yours
dir=$(realpath -m "${CLUSTER_DIR:-${TMPDIR:-/tmp}/penstock-cluster.$(id -u)}") # one cluster's state
port=${CLUSTER_PORT:-6443}                                                    # kube-apiserver's
nodes=${CLUSTER_NODES:-0}                                                     # real nodes: 0 to 3
lock=${CLUSTER_LOCK:-/run/lock/penstock-cluster}                              # one cluster with nodes a machine
services=10.96.0.0/16                                                         # ClusterIPs
# Nodes reach kube-apiserver over a bridge; without nodes, loopback is enough.
address=127.0.0.1
((nodes == 0)) || address=10.77.0.1
authority=$dir/pki/$address/apiserver.crt # kube-apiserver makes it, with its own certificate
node_address() { echo "10.77.0.1$1"; }
node_pods() { echo "10.244.$1.0/24"; }

# spawn NAME COMMAND...: runs it in the background, with its output in a file.
# etcd keeps the lock of the node layer (descriptor 9), because it ends last.
spawn() {
  local name=$1
  shift
  if [[ $name == etcd ]]; then
    setsid "$@" >"$dir/log/$name.log" 2>&1 </dev/null &
  else
    setsid "$@" >"$dir/log/$name.log" 2>&1 </dev/null 9>&- &
  fi
  echo $! >"$dir/run/$name.pid"
}

# stop NAME: kills a process started by spawn, and waits for its end
stop() {
  local pid file=$dir/run/$1.pid
  [[ -f $file ]] || return 0
  pid=$(<"$file")
  kill -KILL "$pid" 2>/dev/null || true
  until_true 10 "$1 to end" gone "$pid"
  rm -f "$file"
}
# orphaned: the process that started this script has ended
orphaned() { [[ $(awk '/^PPid:/ {print $2}' "/proc/$$/status") != "$PPID" ]]; }
gone() { ! grep -qs "^State:.[^XZ]" "/proc/$1/status"; } # or is only waiting to be reaped

# until_true SECONDS WHAT COMMAND...: repeats the command until it succeeds
until_true() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "gave up waiting for $what; see $dir/log" >&2; return 1; }
    sleep 0.2
  done
}

# kubeconfig USER: a kubeconfig file for one of the users of tokens.csv
kubeconfig() {
  local token
  token=$(awk -F, -v user="$1" '$2 == user {print $1}' "$dir/pki/tokens.csv")
  cat <<END
apiVersion: v1
kind: Config
current-context: cluster
contexts: [{name: cluster, context: {cluster: cluster, user: user}}]
clusters: [{name: cluster, cluster: {server: "https://$address:$port", certificate-authority: $authority}}]
users: [{name: user, user: {token: $token}}]
END
}
