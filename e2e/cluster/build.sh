#!/usr/bin/env bash
# Builds all programs of the cluster into $CLUSTER_BIN. Existing programs are
# kept until the sources of this folder or Go change.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(realpath -m "${CLUSTER_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/cluster-bin}")
names="etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl coredns"

cd "$here"
command -v go >/dev/null || { echo "needs Go 1.26 or newer to build the cluster's programs" >&2; exit 1; }
stamp=$(cat go.mod go.sum main.go <(go version) | sha256sum | cut -d' ' -f1)
[[ $(cat "$bin/.stamp" 2>/dev/null) == "$stamp" ]] && exit 0

[[ ${1:-} != --check ]] || exit 1 # build.sh --check: is it all there already?

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v*.}
minor=${minor%.*}
at=k8s.io/component-base/version
mkdir -p "$bin"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$bin/cluster" -ldflags "-s -w \
  -X $at.gitVersion=$version -X $at.gitMajor=1 -X $at.gitMinor=$minor \
  -X k8s.io/client-go/pkg/version.gitVersion=$version" .
for name in $names; do ln -sf cluster "$bin/$name"; done
echo "$stamp" >"$bin/.stamp"
