#!/usr/bin/env bash
# Lists the modules in a binary, with their versions and hashes, as CycloneDX:
#
#   scripts/sbom.sh BINARY FILE
#
# interop/setup.sh cyclonedx installs the tool. The list is read out of the binary, so it has what was linked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^const release = "\(.*\)"$/\1/p' cmd/moorage/main.go)
.cache/interop/cyclonedx/bin/cyclonedx-gomod bin -json -version "$version" -output "$2" "$1"
components=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["components"]))' "$2")
echo "$2: $components modules"
((components > 0))
