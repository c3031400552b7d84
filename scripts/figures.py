#!/usr/bin/env python3
"""Measures the figures of docs/performance.md that were goals of the performance work.

    scripts/figures.py                  all, on a machine that does nothing else
    scripts/figures.py commits memory   the figures of these commands only; --list names them

Prints one table: what, goal, figure, and whether the goal is met. Needs Go, the history of the
repository (for the binary of the version before), PostgreSQL with pgbench (scripts/packages.sh), and SeaweedFS
(interop/setup.sh s3).
What the commands print stays in .cache/figures.

Exit status: 0 all was measured, 1 something could not be. A goal that is missed is no failure.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / ".cache" / "figures"
BINARY = OUTPUT / "moorage"  # as it is released

BUILD = "build"  # the command of the figures of BINARY itself, which is always built

# Name, and the arguments of `go test`.
COMMANDS = {
    "groups": ["./catalog", "-bench", "BenchmarkCommitGroup/clients=(8|32)$", "-benchtime", "1s", "-count", "3"],
    "commits": ["./catalog", "-bench", "BenchmarkCommit$/tables=1000$/clients=(8|64)$|BenchmarkSyncs$/clients=(8|64)$",
                "-benchtime", "2s", "-count", "3"],
    "promises": ["./catalog", "./catalog/commit", "-v", "-run", "^Test(GroupIsOneFile|RebaseAppendersWithoutRetry|RebaseRefusals|"
                 "OverlappingTransactionsSucceed|RoundTrips)$"],
    "rebase": ["./catalog", "-bench", "BenchmarkAppendRebase/manifests=1500/append", "-benchtime", "1280x", "-count", "3"],
    "far": ["./catalog", "-bench", "BenchmarkFar/(put|commit|create|get|cold)/", "-benchtime", "1000x"],
    "hedge": ["./catalog", "-bench", "BenchmarkFarSlow/commit/", "-benchtime", "3000x"],
    "walk": ["./maintenance/due", "-v", "-run", "^TestWalkKeepsItsRate$"],
    "former": ["./cmd/moorage", "-bench", "BenchmarkServerFormer", "-benchtime", "7x"],
    "loads": ["./cmd/moorage", "-bench", "BenchmarkServerLoad", "-benchtime", "10x"],
    "processors": ["./cmd/moorage", "-bench", "BenchmarkServerProcessors", "-benchtime", "7x"],
    "access": ["./cmd/moorage", "-bench", "BenchmarkServerLoadAccess", "-benchtime", "10x"],
    "compressed": ["./rest", "-bench", "BenchmarkLoad$/snapshots=1000/gzip", "-benchtime", "1s", "-count", "3"],
    "pages": ["./rest", "-v", "-run", "^TestListPageIsFlat$", "-million"],
    "postgres": ["./catalog", "-bench", "BenchmarkPostgres/commit/file/clients=(8|64)$|"
                 "BenchmarkPostgres/commit/(statements|moorage)/tables=1000$/clients=(8|64)$",
                 "-benchtime", "2s", "-count", "3"],
    "memory": ["./cmd/moorage", "-bench", "BenchmarkServerMemory", "-benchtime", "1x"],
}


class Results:
    """What the commands have printed."""

    def __init__(self):
        self._metrics = defaultdict(list)  # (benchmark, unit) -> values
        self._tests = {}  # name -> whether it passed

    def read(self, output: str) -> None:
        for line in output.splitlines():
            if found := re.match(r"Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)", line):
                name, numbers = found.groups()
                fields = numbers.split()
                for value, unit in zip(fields[::2], fields[1::2]):
                    self._metrics[name, unit].append(float(value))
            elif found := re.match(r"--- (PASS|FAIL|SKIP): (\S+)", line):
                self._tests[found[2]] = found[1] == "PASS"

    def set(self, benchmark: str, unit: str, value: float) -> None:
        self._metrics[benchmark, unit] = [value]

    def value(self, benchmark: str, unit: str = "ns/op") -> float:
        """The median of what was measured; KeyError if nothing was."""
        if not self._metrics.get((benchmark, unit)):
            raise KeyError(f"{benchmark} {unit}")
        return median(self._metrics[benchmark, unit])

    def ratio(self, over: str, under: str) -> float:
        return self.value(over) / self.value(under)

    def passed(self, test: str) -> float:
        return float(self._tests[test])


@dataclass
class Figure:
    what: str
    command: str
    goal: str  # "≥ 2 ×": how it compares, the number, the unit; or "holds"
    measure: Callable[[Results], float]

    def judge(self, results: Results) -> tuple[str, str]:
        """The figure, and whether the goal is met; KeyError if it was not measured."""
        value = self.measure(results)
        if self.goal == "holds":
            return ("holds" if value else "does not"), ("met" if value else "MISSED")
        compares, number, unit = self.goal.split(" ", 2)
        goal = float(number)
        is_met = value >= goal if compares == "≥" else value <= goal
        decimals = 2 if goal < 10 else 1
        return f"{value:.{decimals}f} {unit}", "met" if is_met else f"MISSED by {abs(value / goal - 1):.0%}"


def syncs_share(clients: int) -> Callable[[Results], float]:
    return lambda r: 100 * r.ratio(f"Syncs/clients={clients}", f"Commit/tables=1000/clients={clients}")


def postgres_share(clients: int) -> Callable[[Results], float]:
    row = "Postgres/commit/{}/clients=" + str(clients)
    return lambda r: 100 * (r.value(row.format("statements/tables=1000")) + r.value(row.format("file"))) / r.value(
        row.format("moorage/tables=1000"))


def group_gain(clients: int) -> Callable[[Results], float]:
    row = f"CommitGroup/clients={clients}/group="
    return lambda r: r.ratio(row + "1", row + "64")


def far_share(operation: str, bare: str, clients: int) -> Callable[[Results], float]:
    return lambda r: 100 * r.ratio(f"Far/{bare}/clients={clients}", f"Far/{operation}/clients={clients}")


def former(workload: str, unit: str) -> Callable[[Results], float]:
    return lambda r: r.value("ServerFormer/" + workload, unit)


FIGURES = [
    Figure("properties of one table, 8 clients, beside groups of one", "groups", "≥ 2 ×", group_gain(8)),
    Figure("the same, 32 clients", "groups", "≥ 4 ×", group_gain(32)),
    Figure("commits that wait are one file and one Apply", "promises", "holds", lambda r: r.passed("TestGroupIsOneFile")),
    Figure("commits over 1,000 tables beside bare syncs, 8 clients", "commits", "≥ 85 %", syncs_share(8)),
    Figure("the same, 64 clients", "commits", "≥ 85 %", syncs_share(64)),
    Figure("commits of 300 tables, processor time beside eeeac24", "former", "≤ 0.75 ×",
           former("commits_of_300_tables", "cpu-ratio")),
    Figure("transactions of ten tables, rate beside eeeac24", "former", "≥ 1.3 ×", former("transactions", "rate-ratio")),
    Figure("32 appenders without retries, with rebase", "promises", "holds",
           lambda r: r.passed("TestRebaseAppendersWithoutRetry")),
    Figure("appends with rebase, 1,500 manifests, 32 clients", "rebase", "≥ 500 /s",
           lambda r: r.value("AppendRebase/manifests=1500/append", "commits/s")),
    Figure("the same, processor time", "rebase", "≤ 2.5 ms",
           lambda r: r.value("AppendRebase/manifests=1500/append", "cpu-ms/op")),
    Figure("what rebase refuses leaves nothing", "promises", "holds", lambda r: r.passed("TestRebaseRefusals")),
    *(Figure(f"{what} on S3, 20 ms a request, {clients} clients, beside bare {bare}s", "far", "≥ 95 %",
             far_share(operation, bare, clients))
      for what, operation, bare in [("commits", "commit", "put"), ("creates", "create", "put"), ("cold loads", "cold", "get")]
      for clients in (1, 8, 64)),
    Figure("p99 of commits, one request of 100 slow, without --hedge-writes", "hedge", "≥ 1.1 ×",
           lambda r: r.value("FarSlow/commit/hedged=false", "p99-ms") / r.value("FarSlow/commit/hedged=true", "p99-ms")),
    Figure("a walk for a new policy reads 190 documents a second", "walk", "holds",
           lambda r: r.passed("TestWalkKeepsItsRate")),
    Figure("95 % of overlapping transactions succeed", "promises", "holds",
           lambda r: r.passed("TestOverlappingTransactionsSucceed")),
    Figure("loads of one table beside a static handler", "loads", "≥ 0.65 ×", lambda r: r.value("ServerLoad/tables=1", "share")),
    Figure("loads of 300 tables, likewise", "loads", "≥ 0.65 ×", lambda r: r.value("ServerLoad/tables=300", "share")),
    Figure("the same, processor time of a load", "loads", "≤ 25 µs",
           lambda r: r.value("ServerLoad/tables=300", "moorage-cpu-µs/req")),
    Figure("the same, processor time of its client", "loads", "≤ 20 µs",
           lambda r: r.value("ServerLoad/tables=300", "client-cpu-µs/req")),
    *(Figure(f"loads with a {shown} and the audit log, beside neither", "access", "≥ 0.9 ×",
             lambda r, shown=shown: r.value(f"ServerLoadAccess/credential={shown}", "share"))
      for shown in ("key", "token")),
    Figure("compressed loads, 1,000 snapshots, beside compressing each", "compressed", "≥ 1.1 ×",
           lambda r: r.ratio("Load/snapshots=1000/gzip/each-time", "Load/snapshots=1000/gzip/moorage")),
    Figure("a page of a million names within 1.5 × one of 1,000", "pages", "holds", lambda r: r.passed("TestListPageIsFlat")),
    Figure("pages of 1,000 names, rate beside eeeac24", "former", "≥ 2 ×", former("list", "rate-ratio")),
    Figure("creates, rate beside GOMAXPROCS as many as processors", "processors", "≥ 1.0 ×",
           lambda r: r.value("ServerProcessors/create", "rate-ratio")),
    Figure("the same of commits of 300 tables", "processors", "≥ 1.0 ×",
           lambda r: r.value("ServerProcessors/commits_of_300_tables", "rate-ratio")),
    Figure("creates, 8 clients, rate beside eeeac24", "former", "≥ 1.8 ×", former("create", "rate-ratio")),
    Figure("commits on PostgreSQL beside statements and file, 8 clients", "postgres", "≥ 80 %", postgres_share(8)),
    Figure("the same, 64 clients", "postgres", "≥ 80 %", postgres_share(64)),
    Figure("requests to the store are as few as named", "promises", "holds", lambda r: r.passed("TestRoundTrips")),
    Figure("memory after the mixed workloads", "memory", "≤ 120 MB", lambda r: r.value("ServerMemory", "mixed-MB")),
    Figure("the same, a minute later", "memory", "≤ 150 MB", lambda r: r.value("ServerMemory", "later-MB")),
    Figure("memory after 50,000 creates by 8 clients", "memory", "≤ 200 MB", lambda r: r.value("ServerMemory", "creates-MB")),
    Figure("memory when idle", "memory", "≤ 40 MB", lambda r: r.value("ServerMemory", "idle-MB")),
    Figure("start", "memory", "≤ 60 ms", lambda r: r.value("ServerMemory", "start-ms")),
    Figure("the binary (36 MB before credentials)", BUILD, "≤ 60 MB", lambda r: r.value("Build", "MB")),
]


def build(results: Results) -> None:
    """Builds BINARY, and notes its size."""
    subprocess.run(["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", BINARY, "./cmd/moorage"], cwd=ROOT, check=True,
                   env=os.environ | {"CGO_ENABLED": "0"})
    results.set("Build", "MB", BINARY.stat().st_size / 1e6)


def run(name: str, results: Results) -> None:
    """Runs a command. What it measured before it failed counts."""
    began = time.monotonic()
    print(f"{name} …", end=" ", file=sys.stderr, flush=True)
    arguments = COMMANDS[name]
    tests = [] if "-run" in arguments else ["-run", "^$"]
    done = subprocess.run(["go", "test", "-count", "1", "-timeout", "30m", *tests, *arguments], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"MOORAGE_BINARY": str(BINARY)})
    (OUTPUT / f"{name}.txt").write_text(done.stdout)
    results.read(done.stdout)
    if done.returncode != 0:
        print(f"failed, see {OUTPUT / name}.txt:", end=" ", file=sys.stderr)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs="*", help="measure the figures of these only")
    parser.add_argument("--list", action="store_true", help="print the names of the commands")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(COMMANDS))
        return 0
    if unknown := set(arguments.command) - set(COMMANDS):
        parser.error(f"no such command: {', '.join(sorted(unknown))}")
    chosen = arguments.command or list(COMMANDS)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    results, is_complete = Results(), True
    build(results)
    for name in chosen:
        run(name, results)
    print(f"{'what':<62} {'goal':>9} {'figure':>9}")
    for figure in FIGURES:
        if figure.command not in [BUILD, *chosen]:
            continue
        try:
            measured, verdict = figure.judge(results)
        except KeyError:
            measured, verdict, is_complete = "–", f"not measured, see {OUTPUT / figure.command}.txt", False
        print(f"{figure.what:<62} {figure.goal:>9} {measured:>9}  {verdict}")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
