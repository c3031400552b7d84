#!/usr/bin/env bash
# Everything that is checked before a change is accepted: style, the rules of the
# repository, all Go tests, and the short forms of the suites with real clients.
#
#   ./test.sh            all steps
#   ./test.sh quick      what a contributor runs often: without the race detector and most engines
#   ./test.sh lint rck   these steps only; ./test.sh --list names them
#
# Needs Go. Steps that need more install it where it is missing, with root or sudo on
# Debian 12 (scripts/packages.sh); format, vet, lint, rules and build need Go alone.
# What is downloaded stays in .cache and in the caches of Go, pip and Maven. Each
# step prints its time and keeps its output in .cache/test; the end of the output
# of a failed one is shown. A skipped test is a failed test.
#
# Exit status: 0 all passed, 1 something failed, 2 something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly logs=.cache/test
readonly step_limit=70m
readonly tail_lines=80
readonly repeated_lines=25
# 42.3 MB; the SDK of Azure (azblob, azidentity) has 1.86 of them, go-jose 0.24. The bound leaves room
# for the SDKs of the storages that are supported.
readonly binary_bytes_max=60000000
readonly venv_python=.cache/interop/venv/bin/python

# The steps in their order. Each is a function below, and ends with the number of
# tests in it where it runs more than one.
readonly steps=(format vet lint rules build go plain processes spark cases make_cluster console image chart package rck pyiceberg trino flink duckdb cluster cluster_s3)
# Spark takes as long as all steps behind it, and mostly one processor: they run beside it.
readonly beside=spark
readonly quick_steps=(format vet lint rules build unraced rck pyiceberg duckdb)

# All builds share one cache. Only the race detector needs cgo, so that what is built without it is built
# once: for the analyses, the tests and the binary.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
export CGO_ENABLED=0

step_format() {
  local files
  files=$(git ls-files --cached --others --exclude-standard -- '*.go')
  local unformatted
  # shellcheck disable=SC2086 # paths of Go files hold no spaces
  unformatted=$(gofmt -l $files)
  [[ -z $unformatted ]] || { echo "gofmt would change:"; echo "$unformatted"; return 1; }
}

# The analyses hold much and drop little, so they collect garbage seldom.
step_vet() { GOGC=300 go vet ./...; }

step_lint() { GOGC=300 GOMEMLIMIT=6GiB go tool staticcheck ./...; }

step_rules() { go test -vet=off ./internal/archtest/...; }

# gotest FLAG... PACKAGE...: runs tests. Nothing comes from Go's cache of results: it does not know that
# some tests run the server as a process. The step vet has looked at all packages.
gotest() { go test -json -count=1 -timeout 60m -vet=off "$@" | python3 scripts/gotest.py; }

# gotest_race FLAG... PACKAGE...: runs tests with the race detector.
gotest_race() { CGO_ENABLED=1 gotest -race "$@"; }

# Suites of server processes, which hold them to times: they have the machine to themselves.
readonly processes='^moorage/interop/(chaos|cluster|soak|torture)$'

# Tests that enumerate what can fail, or measure memory. With the race detector the first draw a sample, and
# most of the second are left out.
readonly unraced='^Test(AccessMatrix|BadInput|Faults|FullDisk|HiddenNamesAreInNoAnswer|Lag|ManagementMatrix|OpensAgain|(Through)?Model)$|^Test(Hedge)?Crash|^TestRaces|Millions|AMillion|ListOfAFolderOfManyFiles|CostLittle|ConsoleMany'

# go_packages: all but those of processes, and but the rules, which are a step.
go_packages() { go list ./... | grep -Ev "$processes|^moorage/internal/archtest$"; }

# With the corpora of the fuzz targets.
step_go() {
  # shellcheck disable=SC2046 # import paths hold no spaces
  gotest_race $(go_packages)
}

# What step_go does by halves.
step_plain() {
  # shellcheck disable=SC2046 # import paths hold no spaces
  gotest -run "$unraced" $(grep -rlE --include='*_test.go' 'testkit/(scale|tablefiles)"' access catalog cmd maintenance registry rest storage | xargs -n1 dirname | sort -u | sed 's,^,./,')
}

# Both, without the race detector.
step_unraced() {
  # shellcheck disable=SC2046 # import paths hold no spaces
  gotest $(go_packages)
}

# The short forms of interop/chaos, interop/cluster, interop/soak and interop/torture, one after the other.
step_processes() {
  local packages
  packages=$(go list ./interop/... | grep -E "$processes")
  # shellcheck disable=SC2086 # import paths hold no spaces
  gotest_race -p 1 $packages
}

# The binary as it is released: static, and without the tables of debuggers. Stack traces keep
# their names and lines.
step_build() {
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/moorage ./cmd/moorage
  local bytes
  bytes=$(stat -c %s bin/moorage)
  echo "bin/moorage has $bytes bytes, at most $binary_bytes_max are allowed"
  ((bytes <= binary_bytes_max)) || return 1
  bin/moorage version
}

# Public reports, played by scripts outside this repository. CI has them; elsewhere they may be missing.
step_cases() { step_build && "$venv_python" scripts/cases.py; }

# The target itself, as a person uses it.
step_make_cluster() { scripts/trycluster.py; }

# Every page of the console at one width, in both themes; then what people come for.
step_console() {
  python3 interop/console/walk.py
  python3 interop/console/team.py
  clients_smoke interop/console
}

# The image, made without Docker: what is in it runs as its user.
step_image() { interop/box/image.py; }

# The packages: Debian's is installed in a copy of this machine, and its server runs as its unit says.
step_package() { interop/box/package.py; }

# The chart, by Helm.
step_chart() { interop/box/chart.py; }

step_rck() { python3 interop/rck/run.py; }

clients_smoke() {
  "$venv_python" -m pytest -c interop/pytest.ini -m smoke "$@"
}

step_pyiceberg() { clients_smoke interop/pyiceberg; }
step_spark() { clients_smoke interop/spark; }
step_trino() { clients_smoke interop/trino; }
step_duckdb() { clients_smoke interop/duckdb; }
step_flink() { clients_smoke interop/flink; }

# Three nodes over PostgreSQL, the tables in a folder and in S3.
step_cluster() { clients_smoke interop/pyiceberg --server cluster; }
step_cluster_s3() { clients_smoke interop/pyiceberg interop/duckdb --server cluster --warehouse s3; }

# ---

passed=0
failed=0
failed_steps=()
declare -A running # the process of each step that runs, which is also its process group
declare -A began
setup_pid=
trap 'for pid in "${running[@]}"; do kill -- "-$pid"; done; [[ -z $setup_pid ]] || kill "$setup_pid"' EXIT
trap 'exit 130' INT TERM

# count LOG STATUS: adds a step's tests to the totals. A step that prints no number
# is one test.
count() {
  local last_passed last_failed
  last_passed=$(grep -oE '[0-9]+ passed' "$1" | tail -1 | cut -d' ' -f1) || last_passed=0
  last_failed=$(grep -oE '[0-9]+ failed' "$1" | tail -1 | cut -d' ' -f1) || last_failed=0
  if [[ $2 -ne 0 && ${last_failed:-0} -eq 0 ]]; then last_failed=1; fi
  if [[ $2 -eq 0 && ${last_passed:-0} -eq 0 ]]; then last_passed=1; fi
  passed=$((passed + ${last_passed:-0}))
  failed=$((failed + ${last_failed:-0}))
}

# start_step NAME: starts a step.
start_step() {
  began[$1]=$SECONDS
  timeout "$step_limit" bash "$0" --step "$1" >"$logs/$1.log" 2>&1 </dev/null &
  running[$1]=$!
}

# end_step NAME: waits for a step that was started, and prints how it went.
end_step() {
  local name=$1 log=$logs/$1.log status=0
  wait "${running[$name]}" || status=$?
  unset "running[$name]"
  count "$log" "$status"
  if [[ $status -eq 0 ]]; then
    grep -E '^ok\s' "$log" || true
    printf -- '--- pass %-10s %4d s\n' "$name" $((SECONDS - began[$name]))
  else
    tail -n "$tail_lines" "$log"
    printf -- '--- FAIL %-10s %4d s (status %d, all of it in %s)\n' "$name" $((SECONDS - began[$name])) "$status" "$log"
    failed_steps+=("$name")
  fi
}

# wait_for_setup: the clients are fetched in the background while Go works.
wait_for_setup() {
  [[ -n $setup_pid ]] || return 0
  local start=$SECONDS status=0
  wait "$setup_pid" || status=$?
  setup_pid=
  printf -- '--- clients fetched, waited %4d s\n' $((SECONDS - start))
  if [[ $status -ne 0 ]]; then
    tail -n "$tail_lines" "$logs/setup.log"
    failed_steps+=(setup)
    failed=$((failed + 1))
  fi
}

case ${1:-} in
  --step)
    set -o pipefail
    "step_$2"
    exit
    ;;
  --list)
    printf '%s\n' "${steps[@]}"
    exit
    ;;
  quick) set -- "${quick_steps[@]}" ;;
esac

selected=("$@")
[[ ${#selected[@]} -gt 0 ]] || selected=("${steps[@]}")
for name in "${selected[@]}"; do
  [[ " ${steps[*]} ${quick_steps[*]} " == *" $name "* ]] || { echo "test.sh: no step is called $name" >&2; exit 2; }
done

command -v go >/dev/null || { echo "test.sh: Go is missing; go.mod names the version" >&2; exit 2; }
packages=()
for name in "${selected[@]}"; do
  case $name in
    format | vet | lint | rules | build) ;;
    go | plain | unraced) packages+=(go python postgres proxy node) ;;
    processes) packages+=(go python postgres proxy) ;;
    cases | pyiceberg | duckdb) packages+=(python) ;;
    make_cluster) packages+=(go python postgres) ;;
    console) packages+=(python node chromium) ;;
    image | package) packages+=(go image) ;;
    chart) packages+=(python) ;;
    rck | spark | trino | flink) packages+=(python java) ;;
    cluster | cluster_s3) packages+=(python postgres) ;;
    *) packages+=(go java python postgres proxy node chromium image) ;;
  esac
done
[[ ${#packages[@]} -eq 0 ]] || scripts/packages.sh "${packages[@]}"
mkdir -p "$logs"

# Go tests and most client suites start these two.
if [[ " ${selected[*]} " =~ " "(go|plain|unraced|processes|make_cluster|pyiceberg|spark|duckdb|cluster|cluster_s3)" " ]]; then
  interop/setup.sh s3 >"$logs/setup.log" 2>&1 </dev/null ||
    { cat "$logs/setup.log"; echo "test.sh: cannot install the S3 server" >&2; exit 2; }
fi
if [[ " ${selected[*]} " =~ " "(go|plain|unraced|pyiceberg|spark|trino|duckdb|cluster|cluster_s3)" " ]]; then
  interop/setup.sh minio >"$logs/setup.log" 2>&1 </dev/null ||
    { cat "$logs/setup.log"; echo "test.sh: cannot build MinIO" >&2; exit 2; }
fi
if [[ " ${selected[*]} " =~ " "(go|plain|unraced)" " ]]; then
  interop/setup.sh gcs azurite >"$logs/setup.log" 2>&1 </dev/null ||
    { cat "$logs/setup.log"; echo "test.sh: cannot install the doubles of Google's and Azure's storage" >&2; exit 2; }
fi
parts=()
for name in "${selected[@]}"; do
  case $name in
    rck) parts+=(rck) ;;
    console) parts+=(axe python) ;;
    chart) parts+=(helm) ;;
    package) parts+=(nfpm cyclonedx) ;;
    cases | make_cluster | pyiceberg | duckdb | cluster | cluster_s3) parts+=(python) ;;
    spark) parts+=(python spark spark-s3) ;;
    trino) parts+=(python trino) ;;
    flink) parts+=(python flink) ;;
  esac
done
if [[ ${#parts[@]} -gt 0 ]]; then
  interop/setup.sh "${parts[@]}" >"$logs/setup.log" 2>&1 </dev/null &
  setup_pid=$!
fi

for name in "${selected[@]}"; do
  case $name in processes | cases | make_cluster | console | chart | package | rck | pyiceberg | spark | trino | flink | duckdb | cluster | cluster_s3) wait_for_setup ;; esac
  start_step "$name"
  [[ $name == "$beside" ]] || end_step "$name"
  # Suites that run the server take this one. Otherwise each of them links one, or several.
  if [[ $name == build && " ${failed_steps[*]} " != *" build "* ]]; then export MOORAGE_BINARY=$PWD/bin/moorage; fi
done
[[ -z ${running[$beside]:-} ]] || end_step "$beside"

# The end of the output is what CI keeps.
for name in "${failed_steps[@]}"; do
  echo "--- the end of $name, again:"
  tail -n "$repeated_lines" "$logs/$name.log"
done
printf 'all steps: %d s\n' "$SECONDS"
[[ ${#failed_steps[@]} -eq 0 ]] || echo "failed: ${failed_steps[*]}"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
