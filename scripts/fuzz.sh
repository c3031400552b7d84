#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other:
#
#   scripts/fuzz.sh 1m     for this long each
#
# What a target finds is written below its package's testdata/fuzz by go test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
duration=${1:?usage: scripts/fuzz.sh DURATION}

found=0
while read -r package targets; do
  for target in $targets; do
    echo "--- $package $target"
    # Without a bound of its own, making one new input small may take all the time there is.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 3s "$package" || found=1
  done
done < <(go list ./... | while read -r package; do
  targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz' | tr '\n' ' ') || true
  [[ -z $targets ]] || echo "$package $targets"
done)
exit "$found"
