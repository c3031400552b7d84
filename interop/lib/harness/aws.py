"""A double of AWS Glue and S3 Tables, and the command line of AWS that asks it."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from harness import paths, server

PROGRAMS = paths.CACHE / "aws" / "bin"


class Moto:
    """A running double, as a context manager. It keeps what it has in memory."""

    def __enter__(self) -> "Moto":
        paths.packages("aws")  # tells how to install it
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-moto-"))
        port = server.free_port()
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_PAGER": "",
        }
        self._process = server.Process([str(PROGRAMS / "moto_server"), "-H", "127.0.0.1", "-p", str(port)], self.folder / "moto.log")
        deadline = time.monotonic() + server.START_SECONDS_MAX
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return self
            if time.monotonic() > deadline or not self._process.running():
                self._process.kill()
                raise server.ServerError("moto did not start")
            time.sleep(0.1)

    def __exit__(self, *_) -> None:
        self._process.kill()
        shutil.rmtree(self.folder)

    def aws(self, *words: str) -> str:
        """Runs a command of AWS, and returns what it printed."""
        done = subprocess.run([str(PROGRAMS / "aws"), *words], capture_output=True, text=True, env=os.environ | self.environment, timeout=300)
        assert done.returncode == 0, f"aws {words}: {done.stdout}{done.stderr}"
        return done.stdout
