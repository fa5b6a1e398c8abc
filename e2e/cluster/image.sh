#!/usr/bin/env bash
# Packs a folder into a container image without a container engine:
#   image.sh NAME[:TAG] ROOTFS OUT.tar [COMMAND [ARG...]]
# OUT.tar is an OCI layout for `ctr images import` and skopeo.
set -euo pipefail
name=$1 rootfs=$2 out=$3
shift 3
[[ $name == *:* ]] || name=$name:latest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/blobs/sha256
mkdir -p "$blobs"

# add FILE: stores it under its digest, and prints the last two fields of its descriptor
add() {
  local digest
  digest=$(sha256sum "$1" | cut -d' ' -f1)
  mv "$1" "$blobs/$digest"
  printf '"digest":"sha256:%s","size":%d' "$digest" "$(stat -c %s "$blobs/$digest")"
}
json() { node -p 'JSON.stringify(process.argv.slice(1))' -- "$@"; }

oci=application/vnd.oci.image
tar -C "$rootfs" --sort=name --mtime=@0 --numeric-owner --owner=0 --group=0 -cf "$work/layer" .
diff=sha256:$(sha256sum "$work/layer" | cut -d' ' -f1)
layer=$(add "$work/layer")
printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":%s,"Env":["PATH=/usr/local/bin:/usr/bin:/bin"]},"rootfs":{"type":"layers","diff_ids":["%s"]},"history":[{"created_by":"image.sh"}]}' \
  "$(json "$@")" "$diff" >"$work/config"
config=$(add "$work/config")
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json",%s},"layers":[{"mediaType":"%s.layer.v1.tar",%s}]}' \
  "$oci" "$oci" "$config" "$oci" "$layer" >"$work/manifest"
manifest=$(add "$work/manifest")
printf '{"schemaVersion":2,"manifests":[{"mediaType":"%s.manifest.v1+json",%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
  "$oci" "$manifest" "$name" "${name##*:}" >"$work/index.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
tar -C "$work" -cf "$out" oci-layout index.json blobs
