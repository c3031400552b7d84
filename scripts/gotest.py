#!/usr/bin/env python3
"""Reads `go test -json` from standard input and judges it.

    go test -json ./... | python3 scripts/gotest.py

Prints the line that `go test` prints for each package, and before it all output of
the package's tests that failed. A test that was skipped has failed: what cannot run
must be said in the test. Only those of NEEDS_A_CLOUD may be skipped, and that is
printed. Then it prints the slowest packages and tests. Ends with `N passed, N failed`,
and status 1 if anything failed or nothing ran.
"""

import json
import re
import sys
from collections import defaultdict

# Tests that nothing on this machine can stand in for. Each runs where its variable is set.
NEEDS_A_CLOUD = {("moorage/storage/adls", "TestRealAccount")}

SLOWEST_MAX = 20
OUTPUT_LINES_MAX = 200
SAID_LINES_MAX = 40
RACE_LINES_MAX = 50
SAID_CHARACTERS_MAX = 300
FAILURES_MAX = 10


class Judge:
    """Counts tests as they end. Subtests count with the test that they belong to, unless skipped."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self._failed_in = defaultdict(int)  # package -> tests
        self._output = defaultdict(list)  # (package, test or None) -> lines, until it ends
        self._seconds = []  # (seconds, package, test or empty), of tests that belong to no other
        self._said = []  # by tests that failed, without the logs of servers between
        self._failures = []  # "package test" of each test that failed, or the package alone
        self._race = {}  # package -> lines of its first data race that are still to be kept

    def read(self, line: str) -> None:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            print(line, end="", flush=True)  # the go command's own words, such as a module that is missing
            return
        action, package, test = event["Action"], event.get("Package"), event.get("Test")
        if action == "build-output":
            print(event["Output"], end="", flush=True)
        elif action == "output":
            self._output[package, test].append(event["Output"])
            self._keep_race(package, event["Output"])
        elif action in ("pass", "fail", "skip"):
            if "/" not in (test or ""):
                self._seconds.append((event.get("Elapsed", 0), package, test or ""))
            if test:
                self._end_of_test(package, test, action)
            else:
                self._end_of_package(package, action)

    def _end_of_test(self, package: str, test: str, action: str) -> None:
        lines = self._output.pop((package, test), [])
        if action == "skip" and (package, test) in NEEDS_A_CLOUD:
            print(f"not run, for want of a cloud: {package} {test}")
            return
        if action != "pass":
            if action == "skip":
                print(f"skipped, which counts as a failure: {package} {test}")
            _show(lines)
            self._note(package, test, lines)
            self._failures.append(f"{package} {test}")
        if action == "skip" or "/" not in test:
            self._count(package, action == "pass")

    def _end_of_package(self, package: str, action: str) -> None:
        lines = self._output.pop((package, None), [])
        if action != "fail":
            _show([line for line in lines if re.match(r"(ok|\?)\s", line)])
            return
        # A panic or a timeout cuts tests off, which then have no end of their own.
        for key in [key for key in self._output if key[0] == package]:
            _show(self._output.pop(key))
            if "/" not in key[1]:
                self._count(package, passed=False)
                self._failures.append(f"{package} {key[1]} (cut off)")
        _show(lines)
        if not self._failed_in[package]:  # it did not build, or a race was found after its tests
            self._count(package, passed=False)
            self._failures.append(package)

    def _note(self, package: str, test: str, lines: list[str]) -> None:
        said = [line.rstrip()[:SAID_CHARACTERS_MAX] for line in lines if re.match(r"\s+\w+_test\.go:\d+: ", line)]
        self._said += [f"{package} {test}:", *said[-SAID_LINES_MAX:]]

    def _keep_race(self, package: str, line: str) -> None:
        """Keeps the first report of a data race in a package: it fails the tests that run at the time, without a word."""
        if line.startswith("WARNING: DATA RACE"):
            self._race.setdefault(package, RACE_LINES_MAX)
        elif line.startswith("====") and package in self._race:
            self._race[package] = 0  # the end of the report
        if self._race.get(package, 0) > 0:
            self._race[package] -= 1
            self._said.append(f"{package}: {line.rstrip()}")

    def repeat(self) -> None:
        """Prints the messages of the failed tests, then the names of these tests: test.sh shows the last lines again."""
        for line in self._said:
            print(line)
        for name in self._failures[-FAILURES_MAX:]:
            print(f"failed: {name}")

    def slowest(self) -> None:
        """Prints which packages and tests took longest, by the clock. Tests that run beside others wait for them, too."""
        for what, rows in (("packages", [r for r in self._seconds if not r[2]]), ("tests", [r for r in self._seconds if r[2]])):
            print(f"slowest {what}:")
            for seconds, package, test in sorted(rows, reverse=True)[:SLOWEST_MAX]:
                print(f"{seconds:8.1f} s  {package} {test}".rstrip())

    def _count(self, package: str, passed: bool) -> None:
        if passed:
            self.passed += 1
        else:
            self.failed += 1
            self._failed_in[package] += 1


def _show(lines: list[str]) -> None:
    print("".join(lines[-OUTPUT_LINES_MAX:]), end="", flush=True)


def main() -> int:
    judge = Judge()
    for line in sys.stdin:
        judge.read(line)
    if judge.passed + judge.failed == 0:
        print("no test ran")
        judge.failed = 1
    judge.slowest()
    judge.repeat()
    print(f"{judge.passed} passed, {judge.failed} failed")
    return 1 if judge.failed else 0


if __name__ == "__main__":
    sys.exit(main())
