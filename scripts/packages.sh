#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are missing:
#
#   scripts/packages.sh [PART...]       all parts if none is named
#
# go        what all Go tests need beside Go
# java      a JDK and Maven, for the compatibility kit, Spark, Trino and Flink
# python    Python with virtual environments, for clients and for the S3 server
# postgres  PostgreSQL
# proxy     PgBouncer
# node      npm, for the emulator of Azure Storage and for checks of the console
# chromium  the browser that walks through the console
# image     Python, the certificates of authorities, and systemd's programs, for the image and the packages
#
# Nothing is installed where the commands are there already, however they came. Needs root
# or sudo to install; without, it names what is missing and exits 2.
set -euo pipefail

declare -A wanted=()
want() {
  local package
  for package in "$@"; do wanted[$package]=1; done
}

have() {
  command -v "$1" >/dev/null
}

# The major version of the java on the path; 0 without one.
java_version() {
  have java || { echo 0; return; }
  java -version 2>&1 | sed -nE '1s/.* version "([0-9]+).*/\1/p'
}

parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(go java python postgres proxy node)
for part in "${parts[@]}"; do
  case $part in
    go)
      have gcc && echo 'int main(void) { return 0; }' | gcc -include stdlib.h -x c -o /dev/null - 2>/dev/null ||
        want gcc libc6-dev # -race needs cgo
      have make || want make
      have git || want git
      have curl || want curl # docs/guide/curl.md
      ;;
    java)
      [[ $(java_version) -ge 17 ]] && have javac || want openjdk-17-jdk-headless
      have mvn || want maven
      have unzip || want unzip # of Trino's archives
      ;;
    python)
      have python3 && python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        want python3 python3-venv
      have flock || want util-linux # interop/setup.sh
      have jq || want jq # docs/guide/move-in.md
      ;;
    postgres)
      compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || have initdb ||
        want postgresql # testkit/pgserver starts a server of its own
      ;;
    proxy) have pgbouncer || [[ -x /usr/sbin/pgbouncer ]] || want pgbouncer ;;
    node) have npm || want npm ;;
    image)
      have python3 || want python3
      [[ -s /etc/ssl/certs/ca-certificates.crt ]] || want ca-certificates
      have curl || want curl # docs/guide/curl.md
      have systemd-analyze || want systemd # of the unit in the packages
      ;;
    chromium) have chromium || want chromium ;;
    *)
      echo "scripts/packages.sh: unknown part: $part" >&2
      exit 2
      ;;
  esac
done

[[ ${#wanted[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! have sudo || ! sudo -n true 2>/dev/null; then
    echo "missing packages: ${!wanted[*]}; install them, or run this as root or with sudo" >&2
    exit 2
  fi
  as_root=(sudo -n)
fi
if ! have apt-get; then
  echo "missing packages, by their names in Debian 12: ${!wanted[*]}" >&2
  exit 2
fi
echo "installing: ${!wanted[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -qq --yes --no-install-recommends "${!wanted[@]}"
