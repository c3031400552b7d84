"""Runs servers for tests on free ports of 127.0.0.1: what scripts/*server.py have in common.

Each is a Server with a name, a program, a part of interop/setup.sh, and what it is started with. Its script prints one
line, its URL, when it answers. It ends when its standard input ends or on SIGTERM, so that it outlives whoever
started it by no more than a moment.
"""

import argparse
import contextlib
import ctypes
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / ".cache" / "interop"

# Only a server that hangs takes as long.
START_SECONDS_MAX = 180
POLL_SECONDS = 0.05
ANSWER_SECONDS_MAX = 10
# Below the ports that systems give to whoever asks for any, so that nobody gets one by chance before the server does.
PORTS = range(10_000, 30_000)
# Another process may take a port between its choice and its use.
STARTS_MAX = 3
LOG_TAIL_LINES = 30

PR_SET_PDEATHSIG = 1


class StartError(Exception):
    """The server did not start."""


class Server:
    """A running server whose files are in folder."""

    # What it is called, the program that it is, and the part of interop/setup.sh that installs that.
    name: str
    program: Path
    part: str

    def __init__(self, folder: Path):
        self.url = ""
        self._log = folder / "server.log"
        folder.mkdir(parents=True, exist_ok=True)
        arguments, environment = self.prepare(folder)
        with self._log.open("w") as log:
            self.child = subprocess.Popen(
                [str(self.program), *arguments],
                cwd=folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )

    def prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Sets the URL. Returns the arguments of the program, and what it finds in its environment besides."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether it answers as it should. An exception of the network or of its answer means that it does not yet."""
        raise NotImplementedError

    def wait(self) -> None:
        """Waits until the server is ready."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.child.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                # In this order: a server that has ended did not give the answers.
                if self.ready() and self.child.poll() is None:
                    return
            time.sleep(POLL_SECONDS)
        self.kill()
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        raise StartError(f"{self.name} did not start; its log ends with:\n{tail}")

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


def answers(url: str) -> bool:
    """Whether there is an answer that is no error; else an exception."""
    urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX).close()
    return True


def die_with_parent() -> None:
    """In a child: be killed when the parent is, however that goes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that were free."""
    found: list[int] = []
    while len(found) < count:
        port = random.choice([port for port in PORTS if port not in found])
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def start(folder: Path, kind: type[Server]) -> Server:
    for left in reversed(range(STARTS_MAX)):
        server = kind(folder)
        try:
            server.wait()
            return server
        except StartError:
            if not left:
                raise
    raise AssertionError


def run(folder: Path, kind: type[Server]) -> int:
    """Runs a server until nobody wants it any more."""
    server = start(folder, kind)
    ended = threading.Event()

    def watch(wait):
        wait()
        ended.set()

    for wait in (sys.stdin.buffer.read, server.child.wait):
        threading.Thread(target=watch, args=(wait,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    print(server.url, flush=True)
    ended.wait()
    crashed = server.child.poll() is not None
    server.kill()
    if crashed:
        print(f"{kind.name} ended by itself", file=sys.stderr)
    return 1 if crashed else 0


def main(document: str, kind: type[Server]) -> None:
    """The whole of a script that runs a server of a kind; document describes the script. Ends the process."""
    # Daemon threads may still read standard input, which an orderly exit would wait for.
    status = _main(document, kind)
    sys.stderr.flush()
    os._exit(status)


def _main(document: str, kind: type[Server]) -> int:
    parser = argparse.ArgumentParser(description=document.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    data = parser.parse_args().data
    if not kind.program.exists():
        print(f"{kind.name} is not installed: run interop/setup.sh {kind.part}", file=sys.stderr)
        return 2
    folder = data or Path(tempfile.mkdtemp(prefix=f"moorage-{kind.part}-"))
    try:
        return run(folder.absolute(), kind)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)
