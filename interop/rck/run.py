#!/usr/bin/env python3
"""Runs the table class of the Iceberg REST Compatibility Kit against a server.

    python3 interop/rck/run.py                      # Moorage, started for the run
    python3 interop/rck/run.py --server cluster     # one of three nodes over PostgreSQL
    python3 interop/rck/run.py --server reference   # the Iceberg project's own server
    python3 interop/rck/run.py -m testListTables    # one method of the kit

Prints each failing test with its message. Ends with `N passed, N failed` and
status 0 only if no test failed and exactly the tests of NEVER_RUN were skipped.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from harness import cluster, paths, server

SERVERS = {
    "moorage": server.Moorage,
    "cluster": lambda arguments: cluster.Cluster(arguments=arguments),
    "reference": server.Reference,
}

KIT = "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests"
KIT_SECONDS_MAX = 900

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

# The kit creates tables with fixed locations beneath these folders, and fails on
# files that an earlier run left there.
KIT_FOLDERS = [Path("/tmp/ns"), Path("/tmp/newdb")]


@dataclass
class Outcome:
    """What the kit reported: names of tests, and for failures their messages."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)


def run_kit(uri: str, warehouse: str, methods: list[str], reports: Path) -> Outcome:
    """Runs the kit in a JVM of its own and reads its report."""
    properties = {**FLAGS, "uri": uri.rstrip("/") + "/", "warehouse": warehouse}
    command = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    command += ["-cp", os.pathsep.join(str(jar) for jar in paths.jars("rck"))]
    command += ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    command += ["--details=none", f"--reports-dir={reports}", f"--select-class={KIT}"]
    for method in methods:
        command.append(f"--include-methodname=.*#{method}(\\(.*\\))?")
    # CATALOG_ variables would become settings of the kit's client.
    env = {k: v for k, v in os.environ.items() if not k.startswith("CATALOG_")}
    log = reports / "kit.log"
    with log.open("w") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=env, timeout=KIT_SECONDS_MAX, check=False)
    report = reports / "TEST-junit-jupiter.xml"
    if not report.exists():
        raise SystemExit(f"the kit wrote no report; it printed:\n{log.read_text()}")
    return read_report(report)


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
    parser.add_argument("-m", "--method", action="append", default=[], help="run only this method (repeatable)")
    options = parser.parse_args()

    for folder in KIT_FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="moorage-rck-") as reports:
        with SERVERS[options.server](["--allow-location", "file:/tmp"]) as running:
            outcome = run_kit(running.uri, running.warehouse, options.method, Path(reports))
            status = judge(outcome, whole=not options.method)
    return status


if __name__ == "__main__":
    sys.exit(main())
