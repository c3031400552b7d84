#!/usr/bin/env python3
"""Runs an S3 server for tests: SeaweedFS, on free ports of 127.0.0.1.

    interop/setup.sh s3                 once: installs it below .cache
    scripts/s3server.py [--data DIR]    DIR: where its files are; else a folder that is removed

Prints one line, its URL, when it answers. Ends when its standard input ends or on SIGTERM,
so that it outlives whoever started it by no more than a moment. Clients sign with the key
`moorage-test`, the secret `moorage-test-secret` and the region us-east-1; a bucket is there when it is made.
The server makes credentials (AssumeRole) at the same URL, for the role arn:aws:iam::000000000000:role/moorage.
"""

import argparse
import base64
import contextlib
import ctypes
import http.client
import json
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
WEED = REPOSITORY / ".cache" / "interop" / "s3" / "bin" / "weed"
ACCESS_KEY_ID = "moorage-test"
SECRET_ACCESS_KEY = "moorage-test-secret"
ROLE_ARN = "arn:aws:iam::000000000000:role/moorage"

# Only a server that hangs takes as long.
START_SECONDS_MAX = 180
POLL_SECONDS = 0.05
ANSWER_SECONDS_MAX = 10
# Below the ports that systems give to whoever asks for any, so that nobody gets one by chance before the server does.
PORTS = range(10_000, 30_000)
# Another process may take a port between its choice and its use.
STARTS_MAX = 3
LOG_TAIL_LINES = 30

# The parts that the server is made of; each listens on a port for HTTP and on one for gRPC.
PARTS = ["master", "volume", "filer", "s3"]

# A bucket gets two volumes at a time, not seven, which 140 buckets would use up. No option says it.
ENVIRONMENT = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "2"}

# Where each part listens besides, for the others; no option says that it should not, or where else.
SOCKETS = "/tmp/seaweedfs-{part}-grpc-{port}.sock"

PR_SET_PDEATHSIG = 1


class StartError(Exception):
    """The server did not start."""


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


def identities() -> str:
    """Who may do what: one user, everything."""
    key = {"accessKey": ACCESS_KEY_ID, "secretKey": SECRET_ACCESS_KEY}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return json.dumps({"identities": [{"name": "test", "credentials": [key], "actions": actions}]})


def policies() -> str:
    """Lets the one user make credentials that a policy narrows (AssumeRole), for a role and without one."""
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    everything = {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": ["*"]}
    role = {
        "roleName": "moorage",
        "roleArn": ROLE_ARN,
        "trustPolicy": {"Version": "2012-10-17", "Statement": [anybody]},
        "attachedPolicies": ["everything"],
    }
    return json.dumps(
        {
            "sts": {
                "tokenDuration": "1h",
                "maxSessionLength": "12h",
                "issuer": "moorage-test",
                "signingKey": base64.b64encode(b"a key for tests of 32 characters").decode(),
            },
            "policy": {"defaultEffect": "Deny", "storeType": "memory"},
            "policies": [
                {"name": "everything", "document": {"Version": "2012-10-17", "Statement": [everything]}},
            ],
            "roles": [role],
        }
    )


def command(weed: Path, files: Path, config: Path, ports: dict[str, tuple[int, int]]) -> list[str]:
    arguments = [
        "-logtostderr=true",
        "server",
        f"-dir={files}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        f"-s3.config={config}",
        f"-s3.iam.config={config.with_name('policies.json')}",
        "-s3.iam=false",
        # A bucket that nobody made is missing, as it is everywhere else.
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        # It is alone.
        "-master.electionTimeout=1s",
        # Its volumes are files of this size, and a bucket takes two or more.
        "-master.volumeSizeLimitMB=64",
        "-volume.max=1000",
        # Its names must not be those of other servers on this machine.
        f"-filer.localSocket={files}/filer.sock",
        f"-s3.localSocket={files}/s3.sock",
    ]
    for part, (http, grpc) in ports.items():
        arguments += [f"-{part}.port={http}", f"-{part}.port.grpc={grpc}"]
    return [str(weed), *arguments]


class Server:
    """A running server whose files are in folder."""

    def __init__(self, folder: Path):
        numbers = free_ports(2 * len(PARTS))
        ports = {part: (numbers[2 * i], numbers[2 * i + 1]) for i, part in enumerate(PARTS)}
        self.url = f"http://127.0.0.1:{ports['s3'][0]}"
        self._master = f"http://127.0.0.1:{ports['master'][0]}"
        self._sockets = [Path(SOCKETS.format(part=part, port=grpc)) for part, (_, grpc) in ports.items()]
        self._log = folder / "server.log"
        files = folder / "files"
        files.mkdir(parents=True, exist_ok=True)
        config = folder / "identities.json"
        config.write_text(identities())
        config.with_name("policies.json").write_text(policies())
        with self._log.open("w") as log:
            self.child = subprocess.Popen(
                command(WEED, files, config, ports),
                cwd=folder,
                env=os.environ | ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )

    def wait(self) -> None:
        """Waits until the server answers and its parts know one another: before, it refuses to write."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.child.poll() is None:
            # In this order: a server that has ended did not give the answers.
            if self._ready() and self.child.poll() is None:
                return
            time.sleep(POLL_SECONDS)
        self.kill()
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        raise StartError(f"the S3 server did not start; its log ends with:\n{tail}")

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/healthz", timeout=ANSWER_SECONDS_MAX).close()
            with urllib.request.urlopen(f"{self._master}/dir/status", timeout=ANSWER_SECONDS_MAX) as answer:
                return json.load(answer)["Topology"]["Max"] > 0  # the volumes for which there is room
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()
        for path in self._sockets:
            path.unlink(missing_ok=True)


def start(folder: Path, kind: type):
    for left in reversed(range(STARTS_MAX)):
        server = kind(folder)
        try:
            server.wait()
            return server
        except StartError:
            if not left:
                raise
    raise AssertionError


def run(folder: Path, kind: type) -> int:
    """Runs a server of a kind, such as Server, until nobody wants it any more."""
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
        print("the S3 server ended by itself", file=sys.stderr)
    return 1 if crashed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    data = parser.parse_args().data
    if not WEED.exists():
        print("the S3 server is not installed: run interop/setup.sh s3", file=sys.stderr)
        return 2
    folder = data or Path(tempfile.mkdtemp(prefix="moorage-s3-"))
    try:
        return run(folder.absolute(), Server)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # Daemon threads may still read standard input, which an orderly exit would wait for.
    status = main()
    sys.stderr.flush()
    os._exit(status)
