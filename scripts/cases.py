#!/usr/bin/env python3
"""Runs the cases: scripts outside this repository that each play one public report against bin/moorage.

    scripts/cases.py [NUMBER...]        such as 49; all if none is named

The folder of the scripts is MOORAGE_CASES, or ../shared/cases beside the checkout. Without it there is nothing to run,
which is said and is no failure, unless CI is true. A script starts its own server and prints PASS, FAIL and NOTE lines,
and `RESULT pass|fail|skip` at the end. Each gets one line here; what a failed one printed is shown besides FAIL lines.

Exit status: 0 none failed, 1 one failed, or CI is true and the folder is missing.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BINARY = REPOSITORY / "bin" / "moorage"
# The scripts know earlier names of three settings. They start this instead of BINARY.
RENAMING = """#!/usr/bin/env bash
arguments=()
while (($#)); do
  case $1 in
    --s3-endpoint) arguments+=(--default-storage-option "s3.endpoint=$2") && shift ;;
    --s3-access-key-id) export AWS_ACCESS_KEY_ID=$2 && shift ;;
    --s3-secret-access-key) export AWS_SECRET_ACCESS_KEY=$2 && shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec {binary} "${{arguments[@]}}"
"""
# All of them take half a minute. Only what hangs takes as long.
CASE_SECONDS_MAX = 180
TAIL_LINES = 15
# Each starts servers: more at once only wait for one another.
AT_ONCE = 2
# Cases that need a server with settings of the warehouse: this one expects that a purge does not wait.
WAREHOUSE_PROPERTIES = {"28_drop_forms": {"moorage.purge-delay": "0"}}
FIRST_PORT = 18_510
PORTS_EACH = 40


@dataclass
class Outcome:
    name: str
    result: str
    lines: list[str]
    seconds: float

    @property
    def failed(self) -> bool:
        return self.result not in ("pass", "skip")

    def describe(self) -> str:
        counts = {word: sum(line.startswith(word + " ") for line in self.lines) for word in ("PASS", "FAIL")}
        text = f"{self.result:5} {self.name:28} {self.seconds:5.1f} s  {counts['PASS']} passed, {counts['FAIL']} failed"
        if self.result == "skip":
            text += f" ({next((line for line in reversed(self.lines) if line.startswith('NOTE')), 'NOTE no reason')[5:]})"
        if self.failed:
            told = [line for line in self.lines if line.startswith("FAIL")] or self.lines[-TAIL_LINES:]
            text += "".join(f"\n      {line}" for line in told)
        return text


def folder() -> Path:
    return Path(os.environ.get("MOORAGE_CASES") or REPOSITORY.parent / "shared" / "cases")


def run(binary: Path, script: Path, first_port: int) -> Outcome:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MOORAGE_", "AWS_"))}
    environment |= {"BIN": str(binary), "PC_PORTS": f"{first_port}-{first_port + PORTS_EACH - 1}"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}  # the folder is not ours
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        arguments = [sys.executable, str(script)]
        if script.stem in WAREHOUSE_PROPERTIES:
            arguments.append(stack.enter_context(prepared(WAREHOUSE_PROPERTIES[script.stem], environment)))
        return judge(script, arguments, environment, start)


@contextlib.contextmanager
def prepared(properties: dict[str, str], environment: dict[str, str]):
    """The address of a server whose default warehouse has properties."""
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--data", data], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            found = next(match for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+$", line.strip())))
            threading.Thread(target=server.stdout.read, daemon=True).start()
            request = urllib.request.Request(
                f"{found[0]}/management/v1/warehouses/default", json.dumps({"properties": properties}).encode(),
                {"Content-Type": "application/json"}, method="PATCH",
            )  # fmt: skip
            urllib.request.urlopen(request, timeout=CASE_SECONDS_MAX).close()
            yield found[0]
        finally:
            server.terminate()
            server.wait()


def judge(script: Path, arguments: list[str], environment: dict[str, str], start: float) -> Outcome:
    try:
        child = subprocess.run(
            arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=CASE_SECONDS_MAX,
        )  # fmt: skip
        lines = child.stdout.splitlines()
    except subprocess.TimeoutExpired as late:
        lines = (late.stdout or b"").decode(errors="replace").splitlines() + [f"FAIL still ran after {CASE_SECONDS_MAX} s"]
    results = [line.split()[1] for line in lines if line.startswith("RESULT ")]
    return Outcome(script.stem, results[-1] if results else "none", lines, time.monotonic() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="such as 49; all if none is named")
    options = parser.parse_args()
    if not BINARY.exists():
        print(f"no {BINARY}: run make build", file=sys.stderr)
        return 1
    if not folder().is_dir():
        print(f"There are no cases at {folder()}; MOORAGE_CASES names another folder.")
        return 1 if os.environ.get("CI") == "true" else 0
    scripts = sorted(path for path in folder().glob("*.py") if path.stem.split("_")[0].isdigit())
    if options.numbers:
        scripts = [path for path in scripts if path.stem.split("_")[0] in options.numbers]
    if not scripts:
        print(f"no case of {folder()} is asked for", file=sys.stderr)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(AT_ONCE) as pool:
        renaming = Path(place) / "moorage"
        renaming.write_text(RENAMING.format(binary=shlex.quote(str(BINARY))))
        renaming.chmod(0o755)
        slots = [FIRST_PORT + PORTS_EACH * number for number in range(len(scripts))]
        for outcome in pool.map(partial(run, renaming), scripts, slots):
            print(outcome.describe(), flush=True)
            failed += outcome.failed
    print(f"{len(scripts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
