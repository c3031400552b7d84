#!/usr/bin/env python3
"""Tries `make cluster N=3` as a person does: starts it, commits through its nodes, and ends it with Ctrl-C.

    scripts/trycluster.py

Each of the three nodes must answer, two of them commit to one table, and the third must see both commits. After Ctrl-C
no node may answer. The whole takes START_SECONDS_MAX + STOP_SECONDS_MAX at most, beside downloads.

Exit status: 0 all of it held, 1 something did not.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
NODES = 3
# It takes some 15 s. Only what hangs takes as long.
START_SECONDS_MAX = 240
STOP_SECONDS_MAX = 120
ANSWER_SECONDS_MAX = 30

READY = "Ctrl-C stops all of it"
STOPPED = "All of it has stopped."

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


class TryError(Exception):
    """Something did not hold."""


def ask(method: str, url: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        raise TryError(f"{method} {url}: {error.code} {error.read().decode(errors='replace')}") from error


def commit_through(nodes: list[str]) -> None:
    """Commits to one table through the first two nodes, and looks at it through the last."""
    for node in nodes:
        ask("GET", f"{node}/v1/config?warehouse=default")
    ask("POST", f"{nodes[0]}/v1/namespaces", {"namespace": ["tried"]})
    ask("POST", f"{nodes[0]}/v1/namespaces/tried/tables", {"name": "t", "schema": SCHEMA})
    for number in range(2):
        updates = [{"action": "set-properties", "updates": {f"from-node-{number + 1}": "yes"}}]
        ask("POST", f"{nodes[number]}/v1/namespaces/tried/tables/t", {"requirements": [], "updates": updates})
    found = ask("GET", f"{nodes[-1]}/v1/namespaces/tried/tables/t")["metadata"]["properties"]
    if not {"from-node-1", "from-node-2"} <= set(found):
        raise TryError(f"node {len(nodes)} does not see what the others committed: {found}")


def answers(node: str) -> bool:
    try:
        ask("GET", f"{node}/healthz")
    except OSError:
        return False
    return True


class Output:
    """The lines that the command prints, read as they come and printed on."""

    def __init__(self, child: subprocess.Popen):
        self.lines: list[str] = []
        self._child = child
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._child.stdout:
            print("  " + line, end="", flush=True)
            self.lines.append(line)
            if line.startswith(READY):
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self) -> list[str]:
        """Waits for the last line of a start. Returns the addresses of the nodes."""
        self._ready.wait(START_SECONDS_MAX)
        if not any(line.startswith(READY) for line in self.lines):
            raise TryError(f"`make cluster` was not ready within {START_SECONDS_MAX} s")
        return re.findall(r"^Node \d+ is ready at (http://\S+)$", "".join(self.lines), re.MULTILINE)

    def wait_until_ended(self) -> None:
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise TryError(f"`make cluster` still ran {STOP_SECONDS_MAX} s after Ctrl-C") from None
        self._reader.join(ANSWER_SECONDS_MAX)
        if not any(line.startswith(STOPPED) for line in self.lines):
            raise TryError("`make cluster` did not stop in order")


def main() -> int:
    command = ["make", "--no-print-directory", "cluster", f"N={NODES}"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    child = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    output = Output(child)
    try:
        nodes = output.wait_until_ready()
        if len(nodes) != NODES:
            raise TryError(f"{NODES} nodes were asked for, {len(nodes)} are named")
        commit_through(nodes)
        os.killpg(child.pid, signal.SIGINT)  # a terminal sends it to make and to all that it started
        output.wait_until_ended()
        if left := [node for node in nodes if answers(node)]:
            raise TryError(f"still answers after Ctrl-C: {', '.join(left)}")
    except (TryError, OSError) as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 1
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
    print(f"make cluster: {NODES} nodes answered, two of them committed, and all of it stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
