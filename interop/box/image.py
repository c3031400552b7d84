#!/usr/bin/env python3
"""Makes the image without Docker, and runs what is in it: `moorage demo` and docs/guide/curl.md.

    interop/box/image.py

The archive must name its blobs by their digests. Its root file system is unpacked into a folder, which then is
the root of processes of the image's user, with nothing but the image's variables. A server there must answer its
own health check, show the tables of the demo, and pass the commands of the guide, which curl sends from outside.
MOORAGE_BINARY names a static binary that goes into the image instead of a new one. Needs root, for chroot.

Exit status: 0 all of it held, 1 something did not.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "scripts"))

import servers  # noqa: E402

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60

# Every file of the image. It has no shell and no libraries.
FILES = {"usr/bin/moorage", "etc/passwd", "etc/group", "etc/ssl/certs/ca-certificates.crt"}
IMAGE_BYTES_MAX = 30_000_000


class BoxError(Exception):
    """Something did not hold."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise BoxError(message)


def read_archive(archive: Path) -> tuple[dict, bytes]:
    """The configuration of the image, and its layer, which is not compressed."""
    with tarfile.open(archive) as opened:
        files = {entry.name: opened.extractfile(entry).read() for entry in opened if entry.isreg()}

    def blob(descriptor: dict) -> bytes:
        content = files["blobs/" + descriptor["digest"].replace(":", "/")]
        expect(descriptor["size"] == len(content), f"{descriptor} has {len(content)} bytes")
        expect(descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}", f"{descriptor} names another blob")
        return content

    expect(json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}, "the archive is no OCI image layout")
    manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
    image = json.loads(blob(manifest["config"]))
    layer = gzip.decompress(blob(manifest["layers"][0]))
    expect(image["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"], "the layer is another one")
    return image, layer


def unpack(layer: bytes, root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        regular = {entry.name for entry in archive if entry.isreg()}
        expect(regular == FILES, f"the image has the files {sorted(regular)}")
        for entry in archive:
            expect(not entry.mode & 0o7022, f"{entry.name} has the mode {entry.mode:o}")
            expect((entry.uid == 0) == (entry.name != "data"), f"{entry.name} belongs to {entry.uid}")
        archive.extractall(root, numeric_owner=True, filter="fully_trusted")


class Container:
    """Runs programs as the image says, with its root as theirs."""

    def __init__(self, root: Path, config: dict):
        self._root, self._config = root, config
        self._user, self._group = map(int, config["User"].split(":"))
        expect(self._user > 0, "the image runs as root")

    def _enter(self) -> None:
        os.chroot(self._root)
        os.chdir(self._config["WorkingDir"])
        os.setgroups([])
        os.setgid(self._group)
        os.setuid(self._user)

    def start(self, command: list[str], variables: dict[str, str], **more) -> subprocess.Popen:
        environment = dict(pair.split("=", 1) for pair in self._config["Env"]) | variables
        # The child enters the root before it executes the program, so the path is the image's.
        return subprocess.Popen(command, preexec_fn=self._enter, env=environment, text=True, **more)  # noqa: PLW1509

    def run(self, *words: str, **variables: str) -> str:
        command = [*self._config["Entrypoint"], *words]
        process = self.start(command, variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed, _ = process.communicate(timeout=START_SECONDS_MAX)
        expect(process.returncode == 0, f"moorage {' '.join(words)} exits with {process.returncode}: {printed}")
        return printed

    def check_health(self, **variables: str) -> int:
        kind, *command = self._config["Healthcheck"]["Test"]
        expect(kind == "CMD", "the health check needs a shell")
        process = self.start(command, variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        process.communicate(timeout=START_SECONDS_MAX)
        return process.returncode

    @contextlib.contextmanager
    def serving(self, *words: str, **variables: str):
        """A server until the end of the block. It must end in order, as the image's signal asks it to."""
        command = [*self._config["Entrypoint"], *(words or self._config["Cmd"])]
        with tempfile.TemporaryFile("w+") as log:
            process = self.start(command, variables, stdout=log, stderr=log)
            try:
                deadline = time.monotonic() + START_SECONDS_MAX
                while self.check_health(**variables) != 0:
                    expect(process.poll() is None and time.monotonic() < deadline, f"no server: {text_of(log)}")
                yield
                process.send_signal(getattr(signal, self._config["StopSignal"]))
                expect(process.wait(STOP_SECONDS_MAX) == 0, f"the server ended with {process.returncode}: {text_of(log)}")
            finally:
                process.kill()
                process.wait()


def text_of(log) -> str:
    log.seek(0)
    return log.read()


def free_address() -> str:
    return f"127.0.0.1:{servers.free_ports(1)[0]}"


def try_demo(container: Container) -> None:
    address = free_address()
    with container.serving("demo", "--listen", address, MOORAGE_LISTEN=address):
        shown = container.run("ls", "-l", "harbour", MOORAGE_URI=f"http://{address}")
        expect(re.search(r"^table +voyages +50k ", shown, re.MULTILINE), f"the demo has other tables: {shown}")
        rows = container.run("rows", "harbour.ships", MOORAGE_URI=f"http://{address}")
        expect(len(rows.splitlines()) > 10, f"the ships have other rows: {rows}")
    expect(container.check_health(MOORAGE_LISTEN=address) == 1, "a server that ended is healthy")


def try_guide(container: Container) -> None:
    """Also shows that the variables alone configure the server: MOORAGE_DATA is the image's."""
    address = free_address()
    with container.serving(MOORAGE_LISTEN=address):
        command = ["go", "test", "-vet=off", "-count=1", "./rest", "-run", "^TestCurlDocument$", "-curl-server", f"http://{address}"]
        subprocess.run(command, cwd=REPOSITORY, check=True)


def main() -> int:
    expect(os.geteuid() == 0, "only root can change the root of a process; run this as root")
    with tempfile.TemporaryDirectory(prefix="moorage-image-") as name:
        folder = Path(name)
        archive, root = folder / "image.tar", folder / "root"
        folder.chmod(0o755)
        root.mkdir()
        subprocess.run([REPOSITORY / "scripts" / "image.py", "--output", archive], check=True)
        expect(archive.stat().st_size <= IMAGE_BYTES_MAX, f"the image has more than {IMAGE_BYTES_MAX} bytes")
        image, layer = read_archive(archive)
        unpack(layer, root)
        container = Container(root, image["config"])
        print(container.run("version").strip())
        try_demo(container)
        try_guide(container)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BoxError as error:
        print(f"interop/box/image.py: {error}", file=sys.stderr)
        sys.exit(1)
