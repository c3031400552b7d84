#!/usr/bin/env python3
"""Installs the Debian package, runs the server by its unit's command, upgrades, and purges.

    interop/box/package.py

It works in a copy of this machine that is gone afterwards: a mount namespace whose root is an overlay of /. dpkg
installs the package there, and the command of the unit runs as the unit's user. A server of the first package must
serve, one of a newer package must still have its table and the changed configuration file, and after a purge
nothing but the data may be left. systemd-analyze must verify the unit, and find it as closed as EXPOSURE_MAX says.
MOORAGE_BINARY names a static binary that is packed instead of a new one. interop/setup.sh nfpm cyclonedx installs
the tools. Needs root, Debian, and systemd's programs; systemd itself need not run.

Exit status: 0 all of it held, 1 something did not.
"""

import configparser
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "scripts"))

import servers  # noqa: E402

UNIT = Path("usr/lib/systemd/system/moorage.service")
SETTINGS = Path("etc/moorage/moorage.yaml")
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60

EXPOSURE_MAX = 1.3  # of 10, by systemd-analyze security
PACKAGE_BYTES_MAX = 30_000_000
PROGRAMS = {"PATH": "/usr/sbin:/usr/bin"}  # the environment of a unit
INSIDE = "MOORAGE_PACKAGE_TEST"  # the folder with the packages, in the process that may mount


class BoxError(Exception):
    """Something did not hold."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise BoxError(message)


def run(*command: str | Path, root: Path | None = None) -> str:
    """Runs a program to its end, with root as its root. Returns what it prints."""
    before = ["chroot", root] if root else []
    done = subprocess.run([*before, *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, f"{shlex.join(map(str, command))} exits with {done.returncode}: {done.stdout}")
    return done.stdout


def copied_machine(folder: Path) -> Path:
    """Mounts an overlay of / that forgets its changes. Returns its root."""
    run("mount", "-t", "tmpfs", "none", folder)
    for name in ("upper", "work", "root"):
        (folder / name).mkdir()
    root = folder / "root"
    options = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work"
    run("mount", "-t", "overlay", "overlay", "-o", options, root)
    run("mount", "-t", "proc", "proc", root / "proc")
    return root


class Unit:
    """The unit that the package installed, and what systemd would make of it."""

    def __init__(self, root: Path):
        self._root = root
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        parser.read(root / UNIT)
        self.service = parser["Service"]

    @contextlib.contextmanager
    def running(self, folder: Path):
        """The server, until the end of the block. It then must end in order."""
        user, group = self.service["User"], self.service["Group"]
        command = ["chroot", f"--userspec={user}:{group}", self._root, *shlex.split(self.service["ExecStart"])]
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(command, env=PROGRAMS, stdout=log, stderr=log)
            try:
                ready = ["chroot", f"--userspec={user}:{group}", self._root, *shlex.split(self.service["ExecStartPost"])]
                waited = subprocess.run(ready, env=PROGRAMS, capture_output=True, timeout=START_SECONDS_MAX)
                log.seek(0)
                expect(waited.returncode == 0 and process.poll() is None, f"the server did not start: {log.read()}")
                yield
                process.terminate()
                expect(process.wait(STOP_SECONDS_MAX) == 0, f"the server ended with {process.returncode}")
            finally:
                process.kill()
                process.wait()


def ask(uri: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(uri, data, {"Content-Type": "application/json"}), timeout=30) as answer:
        return json.loads(answer.read() or b"{}")


def check_unit(root: Path) -> None:
    said = run("systemd-analyze", "verify", f"/{UNIT}", root=root)
    expect("moorage" not in said, f"systemd-analyze verify: {said}")
    said = run("systemd-analyze", "security", "--offline=true", f"/{UNIT}", root=root)
    exposure = float(re.search(r"Overall exposure level for moorage.service: ([0-9.]+)", said)[1])
    print(f"exposure of the unit: {exposure} of 10")
    expect(exposure <= EXPOSURE_MAX, f"the unit has the exposure {exposure}")


def try_package(folder: Path, first: Path, second: Path) -> None:
    root = copied_machine(folder)
    for package in (first, second):
        (root / "tmp" / package.name).write_bytes(package.read_bytes())

    def dpkg(*words: str) -> str:
        return run("dpkg", "--force-unsafe-io", *words, root=root)

    expect(not (root / "etc/moorage").exists() and not (root / "usr/bin/moorage").exists(), "a package is installed already")
    dpkg("--install", f"/tmp/{first.name}")
    expect((root / SETTINGS).stat().st_mode & 0o777 == 0o640, "the settings are readable by everyone")
    expect((root / SETTINGS).stat().st_gid == (root / "var/lib/moorage").stat().st_gid != 0, "the settings have another group")
    expect((root / "etc/moorage/environment").stat().st_mode & 0o777 == 0o600, "the environment is readable")
    check_unit(root)
    print(run(REPOSITORY / "scripts" / "sbom.sh", root / "usr/bin/moorage", folder / "modules.json").strip())
    modules = {each["name"] for each in json.loads((folder / "modules.json").read_text())["components"]}
    expect({"github.com/cockroachdb/pebble/v2", "github.com/jackc/pgx/v5"} <= modules, f"the list has the modules {modules}")

    settings, port = (root / SETTINGS).read_text(), servers.free_ports(1)[0]
    changed = settings.replace("127.0.0.1:8181", f"127.0.0.1:{port}")
    expect(changed != settings, "the settings have no address")
    (root / SETTINGS).write_text(changed)
    uri, unit = f"http://127.0.0.1:{port}", Unit(root)
    with unit.running(folder):
        ask(f"{uri}/v1/namespaces", {"namespace": ["kept"]})
        listed = run("moorage", "ls", "--uri", uri, root=root)
        expect("kept" in listed, f"moorage ls prints {listed}")
    owner = (root / "var/lib/moorage/registry").stat().st_uid
    expect(owner == (root / "var/lib/moorage").stat().st_uid != 0, f"the store belongs to {owner}")

    dpkg("--install", f"/tmp/{second.name}")
    expect((root / SETTINGS).read_text() == changed, "an upgrade changed the settings")
    with unit.running(folder):
        expect(ask(f"{uri}/v1/namespaces")["namespaces"] == [["kept"]], "an upgrade lost a namespace")

    dpkg("--remove", "moorage")
    expect(not (root / "usr/bin/moorage").exists() and not (root / UNIT).exists(), "a removal left files")
    expect((root / SETTINGS).exists(), "a removal took the settings")
    said = dpkg("--purge", "moorage")
    expect(not (root / "etc/moorage").exists(), "a purge left the settings")
    expect((root / "var/lib/moorage/registry").exists() and "/var/lib/moorage stays" in said, "a purge took the data")


def main() -> int:
    expect(os.geteuid() == 0, "only root can install a package; run this as root")
    if INSIDE not in os.environ:
        with tempfile.TemporaryDirectory(prefix="moorage-package-") as folder:
            made = [REPOSITORY / "scripts" / "package.py", "--output", folder]
            subprocess.run([*made, "deb", "rpm"], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([*made, "--version", "99.0.0", "deb"], check=True, stdout=subprocess.DEVNULL)
            inside = ["unshare", "--mount", "--propagation", "private", sys.executable, __file__]
            return subprocess.run(inside, env={**os.environ, INSIDE: folder}).returncode
    folder = Path(os.environ[INSIDE])
    second = next(folder.glob("moorage_99*.deb"))
    first = next(file for file in folder.glob("*.deb") if file != second)
    for package in [first, *folder.glob("*.rpm")]:
        size = package.stat().st_size
        print(f"{package.name}: {size / 1e6:.1f} MB")
        expect(size <= PACKAGE_BYTES_MAX, f"{package.name} has more than {PACKAGE_BYTES_MAX} bytes")
    work = folder / "work"
    work.mkdir()
    try_package(work, first, second)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BoxError as error:
        print(f"interop/box/package.py: {error}", file=sys.stderr)
        sys.exit(1)
