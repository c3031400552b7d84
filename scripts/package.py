#!/usr/bin/env python3
"""Makes the packages for Debian and for distributions with RPM: bin/moorage_VERSION_ARCH.deb and the .rpm.

    scripts/package.py [--arch amd64|arm64] [--version VERSION] [--output FOLDER] [deb] [rpm]

interop/setup.sh nfpm installs the tool that writes them. MOORAGE_BINARY names a binary that is packed instead of
a new one. --version is for a package of the same binary that counts as newer.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import image

REPOSITORY = image.REPOSITORY
NFPM = REPOSITORY / ".cache" / "interop" / "nfpm" / "bin" / "nfpm"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=["deb", "rpm"], metavar="deb|rpm")
    parser.add_argument("--arch", choices=list(MACHINES), default="amd64")
    parser.add_argument("--version", default=image.release())
    parser.add_argument("--output", type=Path, default=REPOSITORY / "bin")
    wanted = parser.parse_args()
    wanted.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="moorage-package-") as folder:
        built = Path(folder)
        binary = binary_for(wanted.arch, built)
        # Completion is the same on all processors; only this machine's binary runs here.
        runs = binary if MACHINES[wanted.arch] == platform.machine() else binary_for(None, built)
        for shell, name in {"bash": "moorage.bash", "zsh": "_moorage"}.items():
            (built / name).write_bytes(subprocess.check_output([runs, "completion", shell]))
        environment = {
            **os.environ,
            "ARCH": wanted.arch,
            "VERSION": wanted.version,
            "BINARY": str(binary),
            "BUILT": str(built),
            "SOURCE_DATE_EPOCH": image.git("log", "-1", "--format=%ct"),
        }
        for kind in wanted.kinds:
            command = [NFPM, "package", "--config", "deploy/packages/nfpm.yaml", "--packager", kind, "--target", wanted.output]
            subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    return 0


def binary_for(arch: str | None, folder: Path) -> Path:
    """The binary for arch, or for this machine."""
    if "MOORAGE_BINARY" in os.environ:
        return Path(os.environ["MOORAGE_BINARY"]).absolute()
    binary = folder / f"moorage-{arch or 'here'}"
    target = {"GOOS": "linux", "GOARCH": arch} if arch else {}
    command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/moorage"]
    subprocess.run(command, cwd=REPOSITORY, env={**os.environ, "CGO_ENABLED": "0", **target}, check=True)
    return binary


if __name__ == "__main__":
    sys.exit(main())
