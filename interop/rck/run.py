#!/usr/bin/env python3
"""Runs the table class of the Iceberg REST Compatibility Kit against a server.

    python3 interop/rck/run.py                      # Moorage, started for the run
    python3 interop/rck/run.py --server cluster     # three nodes over PostgreSQL
    python3 interop/rck/run.py --server reference   # the Iceberg project's own server
    python3 interop/rck/run.py -m testListTables    # one method of the kit

--warehouse s3 keeps the tables on an S3 server, for which it must run with the Python
of .cache/interop/venv. The tests of ON_DISK_ONLY then run afterwards, over a folder.

Prints each failing test with its message. Ends with `N passed, N failed` and
status 0 only if no test failed and exactly the tests of NEVER_RUN were skipped.
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

from harness import cluster, paths, proxy, s3, server

SERVERS = ["moorage", "cluster", "reference"]

KIT = "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests"
KIT_SECONDS_MAX = 1800

# Switches of the kit. Each line turns tests on, or decides which of the texts
# that the specification leaves open a test expects.
FLAGS = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.supports-names-with-dot": "true",
}

# Tests that no switch of the kit turns on: nested and empty namespaces, names
# with a slash, and one that the kit itself has disabled.
NEVER_RUN = {
    "createAndDropEmptyNamespace",
    "createTableInUniqueLocation",
    "listNamespacesWithEmptyNamespace",
    "listTablesInEmptyNamespace",
    "namespacePropertiesOnEmptyNamespace",
    "testDropNamespaceWithNestedNamespace",
    "testListNestedNamespaces",
    "testNamespaceWithSlash",
    "testTableNameWithSlash",
}

# Tests that move a metadata file away as a file of the local disk.
ON_DISK_ONLY = {"testLoadTableWithMissingMetadataFile"}

# The kit creates some tables with fixed locations beneath these folders, wherever
# the warehouse is, and fails on files that an earlier run left there.
KIT_FOLDERS = [Path("/tmp/ns"), Path("/tmp/newdb")]


@dataclass
class Outcome:
    """What the kit reported: names of tests, and for failures their messages."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    def add(self, other: "Outcome") -> None:
        self.passed += other.passed
        self.failed |= other.failed
        self.skipped |= other.skipped


@contextlib.contextmanager
def running_server(name: str, in_s3: bool):
    """A started server, and the address for the kit: with several nodes, that of a proxy which asks them in turns."""
    arguments = ["--allow-location", "file:/tmp"]
    with contextlib.ExitStack() as parts:
        bucket = parts.enter_context(s3.Server()) if in_s3 else None
        if name == "reference":
            running = parts.enter_context(server.Reference())
        elif name == "cluster":
            running = parts.enter_context(cluster.Cluster(arguments=arguments, s3=bucket))
            yield running, parts.enter_context(proxy.Proxy(running)).uri
            return
        else:
            running = parts.enter_context(server.Moorage(arguments, s3=bucket))
        yield running, running.uri


def run_kit(running, uri: str, methods: list[str], without: set[str], reports: Path) -> Outcome:
    """Runs these methods of the kit, or all if there are none, in a JVM of its own and reads its report."""
    properties = {**FLAGS, **running.files.client_properties, "uri": uri.rstrip("/") + "/", "warehouse": running.warehouse}
    command = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    jars = paths.jars("rck") + (paths.jars("rck-s3") if running.files.in_s3 else [])
    command += ["-cp", os.pathsep.join(str(jar) for jar in jars)]
    command += ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    command += ["--details=none", f"--reports-dir={reports}", f"--select-class={KIT}"]
    command += [f"--include-methodname={pattern(method)}" for method in methods]
    command += [f"--exclude-methodname={pattern(method)}" for method in sorted(without)]
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
            outcome.failed[name] = (fault.get("message") or fault.text or "").strip()
        elif case.find("skipped") is not None:
            outcome.skipped.add(name)
        else:
            outcome.passed.append(name)
    return outcome


def judge(outcome: Outcome, whole: bool) -> int:
    """Prints the outcome and returns the exit status."""
    for name, message in sorted(outcome.failed.items()):
        print(f"FAIL {name}\n     " + "\n     ".join(message.splitlines()[:12]))
    faults = len(outcome.failed)
    if whole and outcome.skipped != NEVER_RUN:
        faults += 1
        print(f"FAIL skipped tests: unexpected {sorted(outcome.skipped - NEVER_RUN)},")
        print(f"     expected but not skipped {sorted(NEVER_RUN - outcome.skipped)}")
    if not outcome.passed and not outcome.failed:
        faults += 1
        print("FAIL no test ran")
    print(f"kit {len(outcome.passed) + len(outcome.failed)} executed, {len(outcome.skipped)} never run")
    print(f"{len(outcome.passed)} passed, {faults} failed")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=SERVERS, default="moorage")
    parser.add_argument("--warehouse", choices=["folder", "s3"], default="folder", help="where the server keeps its tables")
    parser.add_argument("-m", "--method", action="append", default=[], help="run only this method (repeatable)")
    options = parser.parse_args()
    in_s3, chosen = options.warehouse == "s3", set(options.method)
    if in_s3 and options.server == "reference":
        parser.error("--warehouse s3 is for moorage and cluster")

    outcome = Outcome()
    if not in_s3:
        outcome.add(run(options.server, options.method))
    else:
        if not chosen or chosen - ON_DISK_ONLY:
            outcome.add(run(options.server, sorted(chosen - ON_DISK_ONLY), in_s3=True))
        if on_disk := sorted(chosen & ON_DISK_ONLY if chosen else ON_DISK_ONLY):
            outcome.add(run(options.server, on_disk))
    return judge(outcome, whole=not options.method)


def run(name: str, methods: list[str], in_s3: bool = False) -> Outcome:
    """Runs methods of the kit, or all, against a server that is started for it and left clean."""
    for folder in KIT_FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="moorage-rck-") as reports, running_server(name, in_s3) as (running, uri):
        return run_kit(running, uri, methods, ON_DISK_ONLY if in_s3 else set(), Path(reports))


if __name__ == "__main__":
    sys.exit(main())
