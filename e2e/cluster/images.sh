#!/usr/bin/env bash
# Builds the images that pods need from this machine's own programs, into
# $CLUSTER_IMAGES: pause, busybox and node ($NODE's binary, or the node here).
# Needs the Debian packages gcc, libc6-dev and busybox-static.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"
mkdir -p "$images"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

node=${NODE:-$(node -p process.execPath)}
# Rebuilds all images when Node or these scripts have changed.
stamp="$("$node" --version) $(cat "$here"/{images,image,rootfs}.sh "$here/pause.c" | sha256sum | cut -d' ' -f1)"
if [[ $(cat "$images/.stamp" 2>/dev/null) != "$stamp" ]]; then
  rm -rf "$images"/{pause,busybox,node}.tar "$images/base"
  echo "$stamp" >"$images/.stamp"
fi

# make NAME:TAG COMMAND PROGRAM...
make() {
  local name=$1 command=$2 out=$images/${1%:*}.tar
  [[ ! -f $out ]] || return 0
  "$here/rootfs.sh" "$work/${name%:*}" "${@:3}"
  "$here/image.sh" "localhost/$name" "$work/${name%:*}" "$work/out.tar" "$command"
  mv "$work/out.tar" "$out"
}

gcc -static -Os -s -o "$work/pause.bin" "$here/pause.c"
make pause:1 /pause "$work/pause.bin=/pause"
make busybox:1 busybox /usr/bin/busybox /usr/bin/busybox=/bin/sh
make node:26 node "$node=/usr/local/bin/node" /bin/sh /usr/bin/busybox

# A base for the project's own images without a registry: Node with npm, a shell, certificates and time zones. Pods do not run
# it, so it is in a separate folder.
base=$images/base
if [[ ! -f $base/node.tar ]]; then
  mkdir -p "$base"
  # The build of the agent also needs librt, which is part of any libc.
  librt=$(ldconfig -p | sed -n 's,.*librt\.so\.1 .*=> ,,p' | head -n 1)
  "$here/rootfs.sh" "$work/base" "$node=/usr/local/bin/node" /usr/bin/busybox "$librt"
  # As in a distribution, a library is a link to its versioned file.
  find "$work/base" -name '*.so.*' -type f -exec sh -c 'mv "$1" "$1.real" && ln -s "${1##*/}.real" "$1"' - {} ';'
  npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
  mkdir -p "$work/base"/{bin,usr/bin,usr/local/bin,usr/local/lib/node_modules,usr/share,etc/ssl/certs}
  for applet in sh cp mv mkdir rm ln chmod chown; do ln -s /usr/bin/busybox "$work/base/bin/$applet"; done
  ln -s /usr/bin/busybox "$work/base/usr/bin/env"
  cp -rL "$npm" "$work/base/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/base/usr/local/bin/npm"
  [[ ! -f /etc/ssl/certs/ca-certificates.crt ]] || cp -L /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/"
  [[ ! -d /usr/share/zoneinfo ]] || cp -r /usr/share/zoneinfo "$work/base/usr/share/"
  "$here/image.sh" localhost/node-base:26 "$work/base" "$work/base.tar" node
  mv "$work/base.tar" "$base/node.tar"
fi
