# Shortcuts. Whatever they do is written in the script or the command that they call.

.DEFAULT_GOAL := help
.PHONY: help check browse-million console-million code quick crash-all lint build release image packages release-check interop interop-beside interop-cluster cluster cases rck torture cluster-history cluster-transfers cluster-views cluster-owner rollbacks worlds revokes maintenance-scale maintenance-chaos mutants soak bench bench-postgres fuzz fuzz-api clean figures random-rows import-scale

# Times of one fuzz target and of the long histories of a cluster, and how often the long torture kills the server.
FUZZTIME ?= 1m
KILLS ?= 1000
DURATION ?= 10m
N ?= 3
S3 ?= --s3

help: ## what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## everything that is checked before a change is accepted (./test.sh)
	./test.sh

quick: ## what a contributor runs often (./test.sh quick)
	./test.sh quick

crash-all: ## every call of every enumeration meets every fault, over every store; an hour
	scripts/packages.sh go postgres
	go test -v -timeout 6h ./catalog ./maintenance/due ./maintenance/jobs ./maintenance/leases ./registry/postgres \
	  -run 'Crash|EachStep' -every

lint: ## gofmt, go vet and staticcheck
	./test.sh format vet lint

build: ## bin/moorage, with the flags of go run, so that nothing is compiled twice
	go build -o bin/moorage ./cmd/moorage

image: ## the image of the Dockerfile for ARCH=amd64|arm64, made without Docker: an archive in bin that docker and podman load
image: ARCH ?= amd64
image:
	scripts/packages.sh image
	scripts/image.py --arch $(ARCH)

packages: ## packages for Debian and for RPM, for ARCH=amd64|arm64, and the list of their modules, in bin
packages: ARCH ?= amd64
packages:
	scripts/packages.sh python
	interop/setup.sh nfpm cyclonedx
	scripts/package.py --arch $(ARCH)
	$(MAKE) release
	scripts/sbom.sh bin/moorage bin/moorage.cdx.json

release-check: ## goreleaser checks its configuration; its build takes ten minutes of a processor
	interop/setup.sh goreleaser
	.cache/interop/goreleaser/bin/goreleaser check

release: ## the static binary as it is released, as bin/moorage
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/moorage ./cmd/moorage

interop: ## PyIceberg, Spark, Trino, Flink, DuckDB and iceberg-rust against a server, the full form; the kit over Google Cloud Storage and Azure
	scripts/packages.sh
	interop/setup.sh
	.cache/interop/venv/bin/python -m pytest -c interop/pytest.ini interop
	python3 interop/rck/run.py --warehouse gcs
	python3 interop/rck/run.py --warehouse azure

interop-cluster: ## the same clients and the kit against three nodes over PostgreSQL, with the tables in S3
	scripts/packages.sh
	interop/setup.sh
	.cache/interop/venv/bin/python -m pytest -c interop/pytest.ini interop --server cluster --warehouse s3
	.cache/interop/venv/bin/python interop/rck/run.py --server cluster --warehouse s3

interop-beside: ## the same clients and the kit while others commit to each table at the same moment
	scripts/packages.sh
	interop/setup.sh
	.cache/interop/venv/bin/python -m pytest -c interop/pytest.ini interop --beside 3
	python3 interop/rck/run.py --beside

cluster: ## PostgreSQL, an S3 server and N=3 nodes over them, until Ctrl-C; S3= keeps the warehouse in a folder
	scripts/packages.sh python postgres
	interop/setup.sh python s3
	.cache/interop/venv/bin/python scripts/cluster.py --nodes $(N) $(S3)

cases: export MOORAGE_CASES ?= $(abspath ../shared/cases)
cases: build ## small scripts that each play a public report, from the folder MOORAGE_CASES=../shared/cases; ONLY="01 49" for some
	scripts/packages.sh python
	interop/setup.sh python
	.cache/interop/venv/bin/python scripts/cases.py $(ONLY)

rck: ## the Iceberg project's REST compatibility kit
	scripts/packages.sh python java
	interop/setup.sh rck
	python3 interop/rck/run.py

screens: build ## every page of the console in both themes at WIDTHS="360 1280 2560", with and without scripts, with axe-core; screenshots in .cache/screens, three of them in docs/images
screens: WIDTHS ?= 360 1280 2560
screens:
	scripts/packages.sh python node chromium
	interop/setup.sh axe
	python3 interop/console/walk.py --widths $(WIDTHS) --scripts on off --images docs/images

torture: ## kill -9 under load, of tables and views, amid transactions and appends, KILLS=1000 times each
	go test -v -timeout 4h ./interop/torture/... -kills $(KILLS)

cluster-history: ## three servers over one database, disturbed for DURATION=10m; and a program that reads their feed of changes
	scripts/packages.sh go postgres
	go test -v -timeout 4h ./interop/cluster/... -run 'TestHistory|TestFeed' -duration $(DURATION) -feed $(DURATION)

cluster-transfers: ## the same amid transactions, for DURATION=10m
	scripts/packages.sh go postgres
	go test -v -timeout 4h ./interop/cluster/... -run TestTransfers -transfers $(DURATION)

cluster-owner: ## the owner of a table stands still while others forward to it, ROUNDS=50 times
cluster-owner: ROUNDS ?= 50
cluster-owner:
	go test -v -timeout 4h ./cmd/moorage -run TestOwnerStandsStill -stands $(ROUNDS)

cluster-views: ## the same while views are replaced and dropped, for DURATION=10m
	scripts/packages.sh go postgres
	go test -v -timeout 4h ./interop/cluster/... -run TestViews -views $(DURATION)

rollbacks: ## registers race with commits that delete old and lost metadata files, DURATION=60s in each of 18 cases
rollbacks: DURATION = 60s
rollbacks:
	scripts/packages.sh
	go test -v -timeout 4h ./catalog -run TestRollbacksRaceWithTrims -parallel 2 -rollbacks $(DURATION)

worlds: ## the decisions about access against those of a naive model, in WORLDS=1000000 random worlds
worlds: WORLDS ?= 1000000
worlds:
	go test -v -timeout 4h ./access -run TestModel -worlds=$(WORLDS)

revokes: ## a privilege is revoked on one of three nodes and asked for on all, REVOKES=10000 times, amid commits and kill -9
revokes: REVOKES ?= 10000
revokes:
	go test -v -timeout 4h ./catalog/gate -run TestRevokeHoldsAtOnce -revokes $(REVOKES)
	go test -v -timeout 4h ./interop/cluster -run TestRevokes -revokes $(REVOKES)

maintenance-scale: ## maintenance beside a million idle tables, 10,000 events a second and 100,000 manifests, and each call that fails
	scripts/packages.sh go postgres
	go test -v -timeout 4h ./maintenance/due -long
	go test -v -timeout 4h ./maintenance/jobs -run TestExpireLongHistory -snapshots 10000
	go test -v -timeout 4h ./maintenance/jobs ./maintenance/leases ./maintenance/due -skip 'TestExpireLongHistory|TestEveryCheckIsNeeded' -every

mutants: ## builds maintenance/jobs without each of its checks in turn; the check's test must then lose a file
	scripts/packages.sh go postgres
	go test -v -timeout 1h ./maintenance/jobs -run TestEveryCheckIsNeeded -every

code: ## a catalog of 50 warehouses, 2,000 namespaces and 5,000 grants as code: exported, applied to an empty server, exported
	go test -v -timeout 1h ./cmd/moorage -run TestAsCodeOfALargeCatalog -large

browse-million: ## pages and searches over a million tables, on Pebble and PostgreSQL, within their bounds
	scripts/packages.sh go postgres
	go test -v -timeout 1h ./catalog/browse -run TestBrowseMany -parallel 1 -tables 1000000 -bounds

random-rows: ## the rows that the management API shows of TABLES=200 random tables each of PyIceberg and Spark, against theirs
random-rows: TABLES ?= 200
random-rows:
	scripts/packages.sh python
	interop/setup.sh python spark
	MOORAGE_RANDOM_TABLES=$(TABLES) .cache/interop/venv/bin/python -m pytest -c interop/pytest.ini \
	  interop/pyiceberg/test_pyiceberg_rows.py interop/spark/test_spark_rows.py

console-million: ## each page of the console of a server with a million tables, within bounds for time and memory
	go test -v -timeout 1h ./cmd/moorage -run TestConsoleMany -console-tables 1000000 -console-bounds

import-scale: ## 10,000 tables imported by a process that is killed 100 times, from each kind of source
	go test -v -timeout 2h ./cmd/moorage -run TestTransferKilled -transfer-tables 10000 -transfer-kills 100
	scripts/packages.sh python
	interop/setup.sh python rck
	MOORAGE_IMPORT_TABLES=10000 MOORAGE_IMPORT_KILLS=100 .cache/interop/venv/bin/python -m pytest -c interop/pytest.ini \
	  interop/pyiceberg/test_pyiceberg_import.py -k killed --capture=no

hostile: ## lists of four million manifests, manifests and folders of millions of files: what reading them takes
	go test -v -timeout 1h ./maintenance/purge ./maintenance/jobs ./storage/file -run 'Millions|AMillion|ManyFiles' -long

maintenance-chaos: CHAOS = $(if $(filter file,$(origin DURATION)),30m,$(DURATION))
maintenance-chaos: ENGINES ?= pyiceberg,spark
maintenance-chaos: ## ENGINES=pyiceberg,spark write for DURATION=30m while everything is deleted at once and nodes are killed
	scripts/packages.sh
	interop/setup.sh python spark trino flink
	mkdir -p bin
	go test -v -timeout 12h ./interop/chaos -artifacts -outputdir $(CURDIR)/bin -run TestChaos -duration $(CHAOS) -engines $(ENGINES)

soak: SOAK = $(if $(filter file,$(origin DURATION)),1h,$(DURATION))
soak: ## all nodes under load while every fault happens to them, for an hour; DURATION=10m for less. ./test.sh draws some of the faults
	scripts/packages.sh go python postgres
	interop/setup.sh s3
	go test -v -timeout 12h ./interop/soak/... -run TestSoak -soak $(SOAK)

bench: ## Go benchmarks, six runs each, for benchstat
	go test -run '^$$' -bench . -skip 'Benchmark(Postgres|CreateWithLocks)' -benchmem -count 6 -timeout 4h ./...

bench-postgres: ## the catalog over PostgreSQL beside pgbench on the same server
	go test -run '^$$' -bench 'Benchmark(Postgres|CreateWithLocks)' -benchmem -benchtime 2s -timeout 1h ./catalog

figures: ## the goals of docs/performance.md, measured in one go and printed as one table; ONLY="loads memory" for some
	scripts/packages.sh go python postgres
	interop/setup.sh s3
	python3 scripts/figures.py $(ONLY)

fuzz: ## every fuzz target for FUZZTIME=1m
	scripts/fuzz.sh $(FUZZTIME)

fuzz-api: ## random requests by management/openapi.yaml on ROUNDS=1000 stores, 500 each; SEED=0 repeats a run
fuzz-api: ROUNDS ?= 1000
fuzz-api: SEED ?= 0
fuzz-api:
	go test -v -timeout 4h ./management -run TestRandomRequests -rounds $(ROUNDS) -seed $(SEED)

clean: ## removes binaries and everything that was downloaded into .cache
	rm -rf bin .cache
