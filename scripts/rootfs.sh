#!/usr/bin/env bash
# Makes what the image consists of:
#
#   scripts/rootfs.sh FOLDER
#
# FOLDER/root is the root of the image, except for FOLDER/data, which is its folder /data and belongs to the
# image's user. The binary is for GOOS and GOARCH. MOORAGE_BINARY names one that is used instead of a new one.
# Needs Go, and the certificates of Debian's package ca-certificates.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly folder=$1 certificates=/etc/ssl/certs/ca-certificates.crt
[[ -s $certificates ]] || { echo "scripts/rootfs.sh: $certificates is missing; install ca-certificates" >&2; exit 2; }

install -d -m 755 "$folder/data"
install -D -m 644 "$certificates" "$folder/root$certificates"
install -D -m 644 -t "$folder/root/etc" deploy/image/passwd deploy/image/group
if [[ -n ${MOORAGE_BINARY:-} ]]; then
  install -D -m 755 "$MOORAGE_BINARY" "$folder/root/usr/bin/moorage"
else
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$folder/root/usr/bin/moorage" ./cmd/moorage
fi
