#!/usr/bin/env bash
# Fetches what the client suites need into .cache/interop, once:
#
#   interop/setup.sh [PART...]      all of them if none is named
#
# python  a virtual environment with the packages of requirements.txt, by hash
# rck, spark
#         the jars of rck/pom.xml and spark/pom.xml
# rck-s3, spark-s3
#         what they need beside them for tables in S3: 65 MB each; the kit's for the full form only
# rck-gcs what the kit needs beside it for tables in Google Cloud Storage, for the full form only
# rck-azure
#         the same for tables in Azure
# trino   Trino's server and its plugin for Iceberg: the archives of trino/pom.xml, 540 MB, by the
#         hashes of trino/archives.sha256
# flink   the jars of flink/pom.xml, 217 MB, by the checksums that Maven Central has for them
# flink-s3
#         what Flink needs beside them for tables in S3, 64 MB, for the full forms only
# keycloak
#         an identity provider, 160 MB, by the hash of oauth/archives.sha256, for the full forms only
# nessie  Nessie, 250 MB, for the full forms only
# psycopg, jdbc
#         PyIceberg's and Java's driver for PostgreSQL, for the full forms only
# aws     doubles of AWS Glue and S3 Tables and the command line of AWS, by the hashes of aws.txt, for
#         the full forms only
# s3      the S3 server that Go tests and client suites start (scripts/s3server.py), by the
#         hashes of s3server.txt
# minio   the S3 server that makes credentials for engines (scripts/minioserver.py): built from its
#         source, as Go's checksum database has it, in some minutes
# gcs     the double of Google Cloud Storage that Go tests start (scripts/gcsserver.py), built likewise
# azurite the emulator of Azure Storage that Go tests start (scripts/azureserver.py) and the Node.js
#         that runs it, 300 MB, by the hashes of azurite/package-lock.json
# axe     the checks of accessibility for the walk through the console, by the hashes of
#         console/axe/package-lock.json
# helm    Helm, for the chart: built likewise
# nfpm    what makes Debian's and RPM's packages: built likewise
# cyclonedx
#         what lists the modules in the binary: built likewise
# goreleaser
#         what makes releases: built likewise, in ten minutes of a processor, for make release-check only
# rust    the program of rust/, built from source by the hashes of rust/Cargo.lock, 840 MB, in six minutes of
#         a processor, for the full forms only
#
# A part is fetched again when the file that pins it changed, or when it was not
# fetched to the end. Needs python3 with venv, mvn with a JDK, npm, and Cargo for rust.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(dirname "$here")/.cache/interop
mkdir -p "$cache"

# One setup at a time in a work tree: two would write the same folders.
exec 9>"$cache/lock"
flock 9

# retry COMMAND... runs a download up to four times, with pauses in which a registry may recover.
retry() {
  local try
  for try in 1 2 3 4; do
    "$@" && return
    echo "interop/setup.sh: try $try failed: $*" >&2
    [[ $try -eq 4 ]] || sleep $((try * 10))
  done
  return 1
}

# fresh PART KEY: was PART fetched to the end, for this KEY?
fresh() {
  [[ -f "$cache/$1.key" && $(<"$cache/$1.key") == "$2" ]]
}

# packages PART FOLDER FILE: makes FOLDER a virtual environment with the packages of FILE.
packages() {
  local key part=$1 venv=$cache/$2 file=$here/$3
  key=$(python3 --version; sha256sum <"$file")
  fresh "$part" "$key" && return
  rm -rf "$venv" "$cache/$part.key"
  python3 -m venv "$venv"
  retry "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --require-hashes --requirement "$file"
  echo "$key" >"$cache/$part.key"
}

# jars PART SUITE [OPTION...]: copies the dependencies of SUITE/pom.xml, or what OPTIONs of Maven say.
jars() {
  local key part=$1 folder=$cache/jars/$1 pom=$here/$2/pom.xml
  shift 2
  key=$(sha256sum <"$pom"; echo "$@")
  fresh "$part" "$key" && return
  rm -rf "$folder" "$cache/$part.key"
  retry mvn --batch-mode --quiet --no-transfer-progress --file "$pom" \
    dependency:copy-dependencies "-DoutputDirectory=$folder" "$@"
  echo "$key" >"$cache/$part.key"
}

# trino: unpacks the libraries of the server, and the one plugin.
trino() {
  local key archives=$cache/jars/trino-archives hashes=$here/trino/archives.sha256
  key=$(cat "$here/trino/pom.xml" "$hashes" | sha256sum)
  fresh trino "$key" && return
  rm -rf "$cache/trino" "$cache/trino.key"
  jars trino-archives trino
  rm "$cache/trino-archives.key" # they are not kept
  (cd "$archives" && sha256sum --check --quiet "$hashes")
  mkdir -p "$cache/trino/plugin"
  tar -xzf "$archives"/trino-server-core-*.tar.gz -C "$cache/trino" --strip-components=1 --wildcards '*/lib/*'
  unzip -q "$archives"/trino-iceberg-*.zip -d "$cache/trino/plugin"
  rm -rf "$archives"
  echo "$key" >"$cache/trino.key"
}

# gobuilt PART MODULE VERSION: builds the program of a Go module into the folder of PART.
gobuilt() {
  local part=$1 module=$2 key=$3
  fresh "$part" "$key" && return
  rm -rf "${cache:?}/$part" "$cache/$part.key"
  (cd / && GOBIN=$cache/$part/bin GOFLAGS= retry go install "$module@$key")
  echo "$key" >"$cache/$part.key"
}

# azurite: no script of a package runs, so nothing is fetched that has no hash.
# npm_packages PART FOLDER: installs what FOLDER/package-lock.json pins.
npm_packages() {
  local key part=$1 lock=$here/$2/package-lock.json
  key=$(sha256sum <"$lock")
  fresh "$part" "$key" && return
  rm -rf "${cache:?}/$part" "$cache/$part.key"
  mkdir -p "$cache/$part"
  cp "$here/$2/package.json" "$lock" "$cache/$part"
  # npm takes no folder behind a link.
  (cd "$cache/$part" && retry npm ci --ignore-scripts --no-audit --no-fund --silent)
  echo "$key" >"$cache/$part.key"
}

# rust: what was compiled stays, so that a change of the program compiles the program alone.
rust() {
  local key
  command -v cargo >/dev/null || { echo "interop/setup.sh rust: needs Cargo, of Rust 1.94 or newer" >&2; return 1; }
  key=$(cargo --version; cat "$here"/rust/Cargo.{toml,lock} "$here"/rust/src/*.rs | sha256sum)
  fresh rust "$key" && return
  rm -f "$cache/rust.key"
  retry cargo build --locked --quiet --manifest-path "$here/rust/Cargo.toml" --target-dir "$cache/rust"
  echo "$key" >"$cache/rust.key"
}

# keycloak: unpacks the server, and does what it would do at each start: its build and its database.
keycloak() {
  local key archives=$cache/jars/keycloak-archives hashes=$here/oauth/archives.sha256 kc=$cache/keycloak/bin/kc.sh
  key=$(cat "$here/oauth/pom.xml" "$hashes" <(declare -f keycloak) | sha256sum)
  fresh keycloak "$key" && return
  rm -rf "$cache/keycloak" "$cache/keycloak.key"
  jars keycloak-archives oauth
  rm "$cache/keycloak-archives.key" # they are not kept
  (cd "$archives" && sha256sum --check --quiet "$hashes")
  mkdir -p "$cache/keycloak"
  tar -xzf "$archives"/keycloak-quarkus-dist-*.tar.gz -C "$cache/keycloak" --strip-components=1
  # An export starts it as far as the tables of its database and the realm of its administrators.
  { "$kc" build --db=dev-file && "$kc" export --optimized --realm master --dir "$cache/keycloak/exported"; } \
    >"$cache/keycloak/build.log" 2>&1 || { cat "$cache/keycloak/build.log" >&2; return 1; }
  rm -rf "$archives" "$cache/keycloak/exported"
  echo "$key" >"$cache/keycloak.key"
}

parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(python rck rck-s3 rck-gcs rck-azure spark spark-s3 trino flink flink-s3 keycloak nessie psycopg jdbc aws rust s3 minio gcs azurite axe helm nfpm cyclonedx)
for part in "${parts[@]}"; do
  case $part in
    python) packages python venv requirements.txt ;;
    s3) packages s3 s3 s3server.txt ;;
    psycopg | aws) packages "$part" "$part" "$part.txt" ;;
    # The last version with a published module.
    minio) gobuilt minio github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c ;;
    gcs) gobuilt gcs github.com/fsouza/fake-gcs-server v1.56.1 ;;
    helm) gobuilt helm helm.sh/helm/v3/cmd/helm v3.22.0 ;;
    nfpm) gobuilt nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm v2.45.2 ;;
    goreleaser) gobuilt goreleaser github.com/goreleaser/goreleaser/v2 v2.15.1 ;;
    cyclonedx) gobuilt cyclonedx github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod v1.10.0 ;;
    azurite) npm_packages azurite azurite ;;
    axe) npm_packages axe console/axe ;;
    rck | spark) jars "$part" "$part" ;;
    trino) trino ;;
    keycloak) keycloak ;;
    rust) rust ;;
    rck-s3 | spark-s3) jars "$part" "${part%-s3}" --activate-profiles s3 -DincludeArtifactIds=iceberg-aws,iceberg-aws-bundle,failsafe ;;
    rck-gcs) jars rck-gcs rck --activate-profiles gcs -DincludeArtifactIds=iceberg-gcp,iceberg-gcp-bundle ;;
    rck-azure) jars rck-azure rck --activate-profiles azure ;;
    flink) jars flink flink --strict-checksums ;;
    nessie | jdbc) jars "$part" "$part" --strict-checksums ;;
    flink-s3) jars flink-s3 flink --strict-checksums --activate-profiles s3 -DincludeArtifactIds=iceberg-aws-bundle ;;
    *)
      echo "interop/setup.sh: unknown part: $part" >&2
      exit 2
      ;;
  esac
done
