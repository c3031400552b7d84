#!/usr/bin/env python3
"""Runs the Iceberg REST Compatibility Kit against a server: its class for tables, and then that for views.

    python3 interop/rck/run.py                      # Moorage, started for the run
    python3 interop/rck/run.py --server cluster     # three nodes over PostgreSQL
    python3 interop/rck/run.py --server reference   # the Iceberg project's own server
    python3 interop/rck/run.py --class view         # one class of the kit
    python3 interop/rck/run.py -m testListTables    # one method
    python3 interop/rck/run.py --beside             # other clients commit to each table at the same moment
    python3 interop/rck/run.py --access             # the server asks who the kit is, and what it may do

--warehouse s3 keeps tables and views on an S3 server, for which it must run with the Python
of .cache/interop/venv; --warehouse gcs on a double of Google Cloud Storage, and --warehouse azure
on an emulator of Azure Storage. The tests that are on_disk_only then run afterwards, over a folder.

Prints each failing test with its message. Ends with `N passed, N failed` and status 0 only if
no test failed, as many ran as there are, and exactly those of never_run were skipped.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from harness import azure, cluster, gcs, judged, paths, proxy, s3, secured, server

SERVERS = ["moorage", "cluster", "reference"]

# Where the server keeps its tables, and what starts that.
WAREHOUSES = {"folder": None, "s3": s3.Server, "gcs": gcs.Server, "azure": azure.Server}

KIT_SECONDS_MAX = 1800

# How many other clients commit with each commit of the kit, with --beside.
BESIDE = 3

# Switches of the kit. Each line turns tests on, or decides which of the texts
# that the specification leaves open a test expects.
FLAGS = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.supports-names-with-dot": "true",
}


@dataclass(frozen=True)
class Kit:
    """A class of the kit, by the names of its methods."""

    name: str
    java: str
    # How many of its tests run: a method with parameters is one for each of them.
    executed: int
    # What no switch of the kit turns on: nested and empty namespaces, names with a slash, and one that the kit itself has disabled.
    never_run: frozenset[str]
    # What moves a metadata file away as a file of the local disk.
    on_disk_only: frozenset[str] = frozenset()
    # What counts the versions of a table: left out where others commit to it too.
    counts_versions: frozenset[str] = frozenset()


# In their order: the class for tables wants a catalog without namespaces, and that for views leaves some.
KITS = [
    Kit(
        "table",
        "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests",
        97,
        frozenset({
            "createAndDropEmptyNamespace",
            "createTableInUniqueLocation",
            "listNamespacesWithEmptyNamespace",
            "listTablesInEmptyNamespace",
            "namespacePropertiesOnEmptyNamespace",
            "testDropNamespaceWithNestedNamespace",
            "testListNestedNamespaces",
            "testNamespaceWithSlash",
            "testTableNameWithSlash",
        }),
        frozenset({"testLoadTableWithMissingMetadataFile"}),
        frozenset({
            "testCompleteCreateOrReplaceTransactionReplace",
            "testCompleteReplaceTransaction",
            "testCreateOrReplaceReplaceTransactionReplace",
            "testMetadataFileLocationsRemovalAfterCommit",
            "testReplaceTransaction",
            "testUpdateTransaction",
        }),
    ),
    Kit(
        "view",
        "org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests",
        50,
        frozenset({"listViewsInEmptyNamespace"}),
    ),
]  # fmt: skip

# The kit creates some tables with fixed locations beneath these folders, wherever
# the warehouse is, and fails on files that an earlier run left there. Its views get
# locations in temporary folders, which it removes.
KIT_FOLDERS = [Path("/tmp/ns"), Path("/tmp/newdb")]


@dataclass
class Outcome:
    """What the kit reported of a class: names of tests, and for failures their messages."""

    passed: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)

    @property
    def executed(self) -> int:
        return len(self.passed) + len(self.failed)

    def add(self, other: "Outcome") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped |= other.skipped


@dataclass(frozen=True)
class Part:
    """Methods of a class of the kit to run, all if there are none, and others not to."""

    kit: Kit
    methods: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()


@contextlib.contextmanager
def running_server(name: str, warehouse: str, beside: int, access: bool):
    """A started server, and the address for the kit: with several nodes, that of a proxy which asks them in turns."""
    arguments = ["--allow-location", "file:/tmp"]
    with contextlib.ExitStack() as parts:
        files = WAREHOUSES[warehouse]
        bucket = parts.enter_context(files()) if files else None
        if name == "reference":
            running = parts.enter_context(server.Reference())
        elif name == "cluster":
            running = parts.enter_context(cluster.Cluster(arguments=arguments, s3=bucket))
            yield running, parts.enter_context(proxy.Proxy(running, beside)).uri
            return
        elif access:
            running = parts.enter_context(secured.Secured(arguments, s3=bucket))
        else:
            running = parts.enter_context(server.Moorage(arguments, s3=bucket))
            if judged.specification():
                running = parts.enter_context(judged.Judged(running))
        yield running, parts.enter_context(proxy.Proxy(running, beside)).uri if beside else running.uri


def run_part(running, uri: str, part: Part, reports: Path, credentials: dict[str, str]) -> Outcome:
    """Runs a part of the kit in a JVM of its own and reads its report."""
    properties = {**FLAGS, **running.files.client_properties, "uri": uri.rstrip("/") + "/", "warehouse": running.warehouse, **credentials}
    command = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    jars = paths.jars("rck") + (paths.jars(f"rck-{running.files.kind}") if running.files.kind else [])
    command += ["-cp", os.pathsep.join(str(jar) for jar in jars)]
    command += ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    command += ["--details=none", f"--reports-dir={reports}", f"--select-class={part.kit.java}"]
    command += [f"--include-methodname={pattern(method)}" for method in sorted(part.methods)]
    command += [f"--exclude-methodname={pattern(method)}" for method in sorted(part.without)]
    # CATALOG_ variables would become settings of the kit's client.
    env = {k: v for k, v in os.environ.items() if not k.startswith("CATALOG_")}
    log = reports / "kit.log"
    with log.open("w") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=env, timeout=KIT_SECONDS_MAX, check=False)
    report = reports / "TEST-junit-jupiter.xml"
    if not report.exists():
        raise SystemExit(f"the kit wrote no report; it printed:\n{log.read_text()}")
    return read_report(report)


def pattern(method: str) -> str:
    """What JUnit's console takes for a method with whatever parameters."""
    return f".*#{method}(\\(.*\\))?"


def read_report(report: Path) -> Outcome:
    outcome = Outcome()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = case.get("name", "?").removesuffix("()")
        fault = case.find("failure")
        if fault is None:
            fault = case.find("error")
        if fault is not None:
            outcome.failed.append((name, (fault.get("message") or fault.text or "").strip()))
        elif case.find("skipped") is not None:
            outcome.skipped.add(name)
        else:
            outcome.passed.append(name)
    return outcome


def judge(kit: Kit, outcome: Outcome, whole: bool, beside: bool) -> int:
    """Prints the outcome of a class, of which all was to run or only a part, and returns how many faults it has."""
    for name, message in sorted(outcome.failed):
        print(f"FAIL {kit.name} {name}\n     " + "\n     ".join(message.splitlines()[:12]))
    faults = len(outcome.failed)
    if whole and outcome.skipped != kit.never_run:
        faults += 1
        print(f"FAIL {kit.name}: skipped tests: unexpected {sorted(outcome.skipped - kit.never_run)},")
        print(f"     expected but not skipped {sorted(kit.never_run - outcome.skipped)}")
    want = kit.executed - (len(kit.counts_versions) if beside else 0)
    if whole and outcome.executed != want:
        faults += 1
        print(f"FAIL {kit.name}: {outcome.executed} tests ran, want {want}")
    print(f"kit {kit.name}: {outcome.executed} executed, {len(outcome.skipped)} never run")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=SERVERS, default="moorage")
    parser.add_argument("--warehouse", choices=WAREHOUSES, default="folder", help="where the server keeps its tables")
    parser.add_argument("--class", dest="kit", choices=[kit.name for kit in KITS], help="run only this class")
    parser.add_argument("--beside", action="store_true", help=f"{BESIDE} other clients commit to a table with each commit")
    parser.add_argument("--access", action="store_true", help="the server knows who the kit is, and decides what it may do")
    parser.add_argument("-m", "--method", action="append", default=[], help="run only this method (repeatable)")
    options = parser.parse_args()
    if options.access and (options.server != "moorage" or options.beside):
        parser.error("--access is for moorage, without --beside")
    if options.warehouse != "folder" and options.server == "reference":
        parser.error(f"--warehouse {options.warehouse} is for moorage and cluster")

    kits = [kit for kit in KITS if options.kit in (None, kit.name)]
    outcomes = {kit: Outcome() for kit in kits}
    for warehouse, parts in divide(kits, frozenset(options.method), options.warehouse):
        if options.beside:
            parts = [Part(part.kit, part.methods, part.without | part.kit.counts_versions) for part in parts]
        run(options.server, warehouse, parts, outcomes, BESIDE if options.beside else 0, options.access)
    faults = sum(judge(kit, outcome, not options.method, options.beside) for kit, outcome in outcomes.items())
    if not any(outcome.executed for outcome in outcomes.values()):
        faults += 1
        print("FAIL no test ran")
    print(f"{sum(len(outcome.passed) for outcome in outcomes.values())} passed, {faults} failed")
    return 1 if faults else 0


def divide(kits: list[Kit], chosen: frozenset[str], warehouse: str) -> list[tuple[str, list[Part]]]:
    """What is to run against one server after the other, each with where its warehouse is; all methods if none is chosen."""
    if warehouse == "folder":
        return [(warehouse, [Part(kit, chosen) for kit in kits])]
    remote = [Part(kit, chosen - kit.on_disk_only, kit.on_disk_only) for kit in kits if not chosen or chosen - kit.on_disk_only]
    local = [Part(kit, kit.on_disk_only & (chosen or kit.on_disk_only)) for kit in kits]
    return [(warehouse, remote), ("folder", [part for part in local if part.methods])]


def run(name: str, warehouse: str, parts: list[Part], outcomes: dict[Kit, Outcome], beside: int, access: bool) -> None:
    """Runs parts of the kit, if there are any, against a server that is started for them and left clean, and adds their outcomes."""
    if not parts:
        return
    for folder in KIT_FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    with running_server(name, warehouse, beside, access) as (running, uri):
        credentials = secured.java_credentials(running, running.owner("kit")) if access else {}
        for part in parts:
            with tempfile.TemporaryDirectory(prefix="moorage-rck-") as reports:
                outcomes[part.kit].add(run_part(running, uri, part, Path(reports), credentials))


if __name__ == "__main__":
    sys.exit(main())
