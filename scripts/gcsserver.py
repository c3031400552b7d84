#!/usr/bin/env python3
"""Runs a double of Google Cloud Storage for tests: fake-gcs-server, on a free port of 127.0.0.1.

    interop/setup.sh gcs                once: builds it below .cache
    scripts/gcsserver.py [--data DIR]   DIR: where its log is; else a folder that is removed

Prints one line, its URL, when it answers. Ends when its standard input ends or on SIGTERM. It speaks the JSON API,
keeps its objects in memory, and asks nobody who he is; a bucket is there when it is made.
"""

from pathlib import Path

import servers


class FakeGCS(servers.Server):
    name = "fake-gcs-server"
    program = servers.CACHE / "gcs" / "bin" / "fake-gcs-server"
    part = "gcs"

    def prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        [port] = servers.free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        return [
            "-backend=memory", "-scheme=http", "-host=127.0.0.1", f"-port={port}", f"-external-url={self.url}",
            f"-public-host=127.0.0.1:{port}", "-log-level=warn",
        ], {}

    def ready(self) -> bool:
        return servers.answers(f"{self.url}/_internal/healthcheck")


if __name__ == "__main__":
    servers.main(__doc__, FakeGCS)
