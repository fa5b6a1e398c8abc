#!/usr/bin/env bash
# Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and
# if $CLUSTER_NODES is above 0, also CoreDNS and that many nodes (node.sh).
# Returns when all are ready, and prints the path of an admin kubeconfig file.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"
[[ -x $bin/kube-apiserver ]] || { echo "no binaries in $bin: run build.sh, or set CLUSTER_BIN" >&2; exit 1; }
[[ ! -f $dir/run/etcd.pid ]] || { echo "$dir is already running, or was not stopped by down.sh" >&2; exit 1; }
mkdir -p "$dir"/{log,run,pki,etcd}

if ((nodes > 0)); then # links, addresses and mounts of the nodes exist once a machine
  mkdir -p "${lock%/*}"
  exec 9>>"$lock"
  if ! flock --nonblock 9; then
    echo "waiting for the running cluster with nodes: $(tail -n 1 "$lock")" >&2
    end=$((SECONDS + ${CLUSTER_LOCK_TIMEOUT:-1800}))
    until flock --timeout 1 9; do
      # If the starter has ended, nothing would stop the cluster, and all others would wait for it.
      ! orphaned || { echo "the process that started this has ended" >&2; exit 1; }
      ((SECONDS < end)) || { echo "it was not stopped in time: see $lock" >&2; exit 1; }
    done
  fi
  echo "$dir" >"$lock"
  # Remains of a killed cluster. We have its lock now, so nothing uses them.
  for name in $(ip -o link show type veth 2>/dev/null | sed -n 's/^[0-9]*: \(penstock-[0-9]\)@.*/\1/p'); do ip link del "$name" 2>/dev/null || true; done
  for name in $(ip netns list 2>/dev/null | sed -n 's/^\(penstock-[0-9]\)\b.*/\1/p'); do ip netns del "$name" 2>/dev/null || true; done
  ip link del penstock0 2>/dev/null || true
fi

# Users with fixed tokens, which need no client certificates.
if [[ ! -f $dir/pki/tokens.csv ]]; then
  id=0
  while IFS=, read -r user group; do
    echo "$(openssl rand -hex 16),$user,$((++id)),$group"
  done >"$dir/pki/tokens.csv" <<'END'
admin,system:masters
system:kube-controller-manager,
system:kube-scheduler,
system:kube-proxy,
system:node:node-1,system:nodes
system:node:node-2,system:nodes
system:node:node-3,system:nodes
END
  openssl genrsa -out "$dir/pki/sa.key" 2048 2>/dev/null
  # kube-apiserver's identity for kubelets (logs, exec, port-forward)
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /O=system:masters/CN=kube-apiserver \
    -keyout "$dir/pki/kubelet-client.key" -out "$dir/pki/kubelet-client.crt" 2>/dev/null
fi
while IFS=, read -r _ user _; do
  kubeconfig "$user" >"$dir/pki/${user##*:}.kubeconfig"
done <"$dir/pki/tokens.csv"
export KUBECONFIG=$dir/pki/admin.kubeconfig

endpoints=none # an endpoint of the Service "kubernetes" may not be on loopback
if ((nodes > 0)); then
  endpoints=lease
  touch "$dir/bridge"
  ip link add penstock0 type bridge
  ip addr add "$address/24" dev penstock0
  ip link set penstock0 up
fi

# Less frequent garbage collection: a third more memory for a fifth less CPU time.
export GOGC=${GOGC:-400}
spawn etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn \
  --listen-client-urls "unix://$dir/run/etcd.sock" \
  --advertise-client-urls http://127.0.0.1:0 --listen-peer-urls http://127.0.0.1:0

spawn kube-apiserver "$bin/kube-apiserver" \
  --etcd-servers "unix://$dir/run/etcd.sock" \
  --bind-address "$address" --advertise-address "$address" --secure-port "$port" \
  --cert-dir "${authority%/*}" \
  --token-auth-file "$dir/pki/tokens.csv" \
  --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
  --service-cluster-ip-range "$services" --endpoint-reconciler-type "$endpoints" \
  --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$dir/pki/sa.key" --service-account-signing-key-file "$dir/pki/sa.key" \
  --kubelet-client-certificate "$dir/pki/kubelet-client.crt" --kubelet-client-key "$dir/pki/kubelet-client.key" \
  --kubelet-preferred-address-types InternalIP \
  --enable-aggregator-routing --allow-privileged --profiling=false
until_true 120 kube-apiserver curl -fsS --cacert "$authority" "https://$address:$port/readyz"

# The binaries of envtest (KUBEBUILDER_ASSETS) do not include the next two. The first sends some hundred requests at its start, which
# would take several seconds with its default limit of 20 per second.
[[ ! -x $bin/kube-controller-manager ]] || spawn kube-controller-manager "$bin/kube-controller-manager" \
  --kubeconfig "$dir/pki/kube-controller-manager.kubeconfig" \
  --leader-elect=false --secure-port 0 --use-service-account-credentials --profiling=false \
  --kube-api-qps 1000 --kube-api-burst 2000 \
  --service-account-private-key-file "$dir/pki/sa.key" --root-ca-file "$authority"

[[ ! -x $bin/kube-scheduler ]] || spawn kube-scheduler "$bin/kube-scheduler" --kubeconfig "$dir/pki/kube-scheduler.kubeconfig" \
  --leader-elect=false --secure-port 0 --profiling=false

if ((nodes > 0)); then
  cat >"$dir/Corefile" <<END
.:53 {
  bind $address
  errors
  cache 5
  kubernetes cluster.local {
    kubeconfig $KUBECONFIG
  }
}
END
  spawn coredns "$bin/coredns" -conf "$dir/Corefile"
  for ((n = 1; n <= nodes; n++)); do "$here/node.sh" "$n" 9>&-; done
fi

# This check is frequent, so it does not use kubectl, which needs 0.2 s of CPU time per call.
[[ ! -x $bin/kube-controller-manager ]] || until_true 60 "the default service account" \
  curl -fsS --cacert "$authority" --oauth2-bearer "$(awk -F, '$2 == "admin" {print $1}' "$dir/pki/tokens.csv")" \
  "https://$address:$port/api/v1/namespaces/default/serviceaccounts/default"
for ((n = 1; n <= nodes; n++)); do
  until_true 120 "the kubelet of node-$n" "$bin/kubectl" get --raw "/api/v1/nodes/node-$n/proxy/healthz"
  until_true 60 "node-$n" "$bin/kubectl" wait node "node-$n" --for condition=Ready --timeout 5s
done
if orphaned; then
  echo "the process that started this has ended, so the cluster stops" >&2
  exec "$here/down.sh" --purge
fi
echo "$KUBECONFIG"
