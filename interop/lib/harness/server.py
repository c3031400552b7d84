"""Servers under test: Moorage itself, and the Iceberg project's reference for a baseline.

Both are processes on a loopback port that the system picks, with a fresh folder each. Use them as context
managers. Leaving the block of a Moorage server stops it with SIGTERM, requires exit status 0, and requires a
clean `moorage doctor --deep`. If all of that holds, the folder is removed, otherwise kept.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path

from harness import paths
from harness.files import Folder
from harness.s3 import Server as S3

# Only a hanging server takes this long.
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 120
CHECK_SECONDS_MAX = 300
# Below the systems' ephemeral ports, so that no other process gets such a port before the server does.
PORTS = range(10_000, 30_000)
LOG_TAIL_LINES = 40


class ServerError(Exception):
    """A server did not start, did not stop, or left its data in a bad state."""


def build() -> Path:
    """Builds the static binary as in a release, and returns its path.

    MOORAGE_BINARY names an existing binary to use instead.
    """
    given = os.environ.get("MOORAGE_BINARY")
    if given:
        return Path(given).resolve()
    binary = paths.REPOSITORY / "bin" / "moorage"
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(binary), "./cmd/moorage"],
        cwd=paths.REPOSITORY,
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )
    return binary


class Process:
    """A child process whose output goes to a log file, which is searched for one line."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None, cwd: Path | None = None):
        self.log = log
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            text=True,
            errors="replace",
            process_group=0,  # keeps Ctrl-C from it; its parent stops it properly
        )
        self.pid = self._child.pid
        self._found: re.Match[str] | None = None
        self._settled = threading.Event()

    def wait_for(self, pattern: str, seconds: float) -> re.Match[str]:
        """Waits for a line that matches pattern; raises ServerError if there is none."""
        reader = threading.Thread(target=self._copy, args=(re.compile(pattern),), daemon=True)
        reader.start()
        self._settled.wait(seconds)
        if self._found is None:
            self.kill()
            reader.join(STOP_SECONDS_MAX)
            raise ServerError(f"no line with /{pattern}/ within {seconds} s; it printed:\n{self.tail()}")
        return self._found

    def _copy(self, pattern: re.Pattern[str]) -> None:
        with self.log.open("w") as out:
            for line in self._child.stdout:
                out.write(line)
                out.flush()
                if self._found is None:
                    self._found = pattern.search(line)
                    if self._found:
                        self._settled.set()
        self._settled.set()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit status."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"still running {STOP_SECONDS_MAX} s after SIGTERM:\n{self.tail()}") from None

    def kill(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()

    def running(self) -> bool:
        return self._child.poll() is None

    def tail(self) -> str:
        if not self.log.exists():
            return "(nothing)"
        return "\n".join(self.log.read_text().splitlines()[-LOG_TAIL_LINES:])


class Moorage:
    """`moorage serve` on a fresh data folder, with its warehouse there or on an S3 server.

    arguments are additional ones for serve, such as ["--allow-location", "file:/tmp"]. A server that a test
    kills and restarts needs a port from free_port.
    """

    warehouse = "default"
    name = "moorage"

    def __init__(self, arguments: list[str] | None = None, s3: S3 | None = None, port: int = 0):
        self.binary = build()
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-interop-"))
        self.data = self.folder / "data"
        self.log = self.folder / "serve.log"
        self._arguments = ["--listen", f"127.0.0.1:{port}", "--data", str(self.data), *(arguments or [])]
        self._env = environment(s3)
        self.files = s3 or Folder()
        self.uri = ""

    def __enter__(self) -> "Moorage":
        self.start()
        return self

    def start(self) -> None:
        """Starts the server, or restarts it after kill with the existing data."""
        self._process = Process([str(self.binary), "serve", *self._arguments], self.log, self._env)
        # The address in the last line of its output, so that the log has all of it.
        found = self._process.wait_for(r"ENDPOINT '(http://127\.0\.0\.1:[1-9]\d*)'", START_SECONDS_MAX)
        self.uri = found.group(1)

    def kill(self) -> None:
        """Ends the server with SIGKILL."""
        self._process.kill()

    def __exit__(self, kind, *_) -> None:
        faults = []
        if not self._process.running():
            faults.append(f"the server had ended by itself:\n{self._process.tail()}")
        status = self._process.stop()
        if status != 0:
            faults.append(f"exit status {status} after SIGTERM:\n{self._process.tail()}")
        faults += self._check()
        if faults:
            raise ServerError("\n".join(faults + [f"its folder is kept: {self.folder}"]))
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"the server's folder is kept: {self.folder}")

    def _check(self) -> list[str]:
        check = subprocess.run(
            [str(self.binary), "doctor", "--deep", "--data", str(self.data)],
            capture_output=True,
            text=True,
            env=self._env,
            timeout=CHECK_SECONDS_MAX,
        )
        if check.returncode == 0:
            return []
        return [f"moorage doctor --deep --data: exit status {check.returncode}\n{check.stdout}{check.stderr}"]


# A warehouse with this property deletes the files of a purged table as soon as possible.
PURGE_AT_ONCE = {"moorage.purge-delay": "0"}


def purge_at_once(running) -> None:
    """Has the warehouse of a server purge without delay: suites check that files are deleted."""
    request = urllib.request.Request(
        f"{running.uri}/management/v1/warehouses/{running.warehouse}",
        data=json.dumps({"properties": PURGE_AT_ONCE}).encode(),
        headers={"Content-Type": "application/json"},
        method="PATCH",
    )
    with urllib.request.urlopen(request, timeout=START_SECONDS_MAX):
        pass


class Reference:
    """The Iceberg project's own REST server over SQLite, for a baseline.

    It shows whether a failing test is the server's fault or the suite's. Its catalog is Java's JdbcCatalog: uri names another
    database than a file in its folder, and settings has further variables of the server.
    """

    name = "reference"
    files = Folder()

    def __init__(self, uri: str = "", settings: dict[str, str] | None = None):
        self.folder = Path(tempfile.mkdtemp(prefix="reference-interop-"))
        self.database = uri or f"jdbc:sqlite:{self.folder}/catalog.db"
        self._settings = settings or {}
        self.log = self.folder / "serve.log"
        self.warehouse = f"file://{self.folder}/warehouse"  # Trino refuses locations without a scheme
        self.uri = ""

    def __enter__(self) -> "Reference":
        port = free_port()
        env = {
            **os.environ,
            "CATALOG_REST_PORT": str(port),
            "CATALOG_URI": self.database,
            "CATALOG_WAREHOUSE": self.warehouse,
            "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
            **self._settings,
        }
        drivers = paths.jars("jdbc") if self.database.startswith("jdbc:postgresql:") else []
        classpath = os.pathsep.join(str(jar) for jar in paths.jars("rck") + drivers)
        command = ["java", "-Xmx512m", "-cp", classpath, "org.apache.iceberg.rest.RESTCatalogServer"]
        self._process = Process(command, self.log, env)
        self._process.wait_for(r"Started oejs\.Server@", START_SECONDS_MAX)
        self.uri = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, kind, *_) -> None:
        self._process.stop()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)


class External:
    """A server that was started elsewhere; it is not stopped or checked."""

    name = "external"
    files = Folder()

    def __init__(self, uri: str, warehouse: str):
        self.uri = uri
        self.warehouse = warehouse

    def __enter__(self) -> "External":
        return self

    def __exit__(self, *_) -> None:
        pass


def environment(s3: S3 | None) -> dict[str, str]:
    """The environment of a Moorage process, without variables of the caller that would affect tests."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "AWS_"))}
    return inherited | (s3.settings() if s3 else {})


def free_port() -> int:
    """A port of 127.0.0.1 that was free."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port

