#!/usr/bin/env python3
"""Runs MinIO for tests, on a free port of 127.0.0.1.

    interop/setup.sh minio              once: builds it below .cache
    scripts/minioserver.py [--data DIR] DIR: where its files are; else a folder that is removed

Prints one line, its URL, when it answers. Ends when its standard input ends or on SIGTERM. Key, secret and region
are those of scripts/s3server.py. It makes credentials (AssumeRole) at the same URL, and needs no role.
"""

import argparse
import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import s3server

MINIO = s3server.REPOSITORY / ".cache" / "interop" / "minio" / "bin" / "minio"


class Server:
    """A running server whose files are in folder."""

    def __init__(self, folder: Path):
        port, console = s3server.free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        files = folder / "files"
        files.mkdir(parents=True, exist_ok=True)
        settings = {
            "MINIO_ROOT_USER": s3server.ACCESS_KEY_ID,
            "MINIO_ROOT_PASSWORD": s3server.SECRET_ACCESS_KEY,
            "MINIO_REGION": "us-east-1",
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_CALLHOME_ENABLE": "off",
            "HOME": str(folder),
        }
        with self._log.open("w") as log:
            self.child = subprocess.Popen(
                [
                    str(MINIO), "server", "--quiet", f"--address=127.0.0.1:{port}",
                    f"--console-address=127.0.0.1:{console}", str(files),
                ],
                cwd=folder,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=s3server.die_with_parent,
            )

    def wait(self) -> None:
        """Waits until the server answers."""
        deadline = time.monotonic() + s3server.START_SECONDS_MAX
        while time.monotonic() < deadline and self.child.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                urllib.request.urlopen(f"{self.url}/minio/health/ready", timeout=s3server.ANSWER_SECONDS_MAX).close()
                return
            time.sleep(s3server.POLL_SECONDS)
        self.kill()
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-s3server.LOG_TAIL_LINES :])
        raise s3server.StartError(f"MinIO did not start; its log ends with:\n{tail}")

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="DIR")
    data = parser.parse_args().data
    if not MINIO.exists():
        print("MinIO is not installed: run interop/setup.sh minio", file=sys.stderr)
        return 2
    folder = data or Path(tempfile.mkdtemp(prefix="moorage-minio-"))
    try:
        return s3server.run(folder.absolute(), Server)
    except s3server.StartError as error:
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
