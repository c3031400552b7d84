"""A proxy that validates a server's responses against the OpenAPI files (interop/answers)."""

import os
import subprocess
import tempfile
from pathlib import Path

from harness import paths
from harness.server import START_SECONDS_MAX, Process, ServerError

MANAGEMENT = paths.REPOSITORY / "management" / "openapi.yaml"
FAULTS_SHOWN_MAX = 10


def specification() -> Path | None:
    """The specification's OpenAPI file; None if it is missing, which is an error in CI."""
    named = os.environ.get("MOORAGE_OPENAPI")
    path = Path(named) if named else paths.REPOSITORY.parent / "shared" / "reference" / "rest-catalog-open-api.yaml"
    if path.exists() or os.environ.get("CI") == "true":
        return path
    print(f"NOT RUN: answers are not judged, there is no OpenAPI file at {path}; set MOORAGE_OPENAPI")
    return None


class Judged:
    """The proxy, as a context manager; clients use it as the server.

    Leaving it raises ServerError for invalid responses.
    """

    def __init__(self, server):
        self._server = server
        self._folder = tempfile.TemporaryDirectory(prefix="moorage-answers-")
        self.uri = ""

    def __getattr__(self, name: str):
        return getattr(self._server, name)  # other attributes are the server's

    def __enter__(self) -> "Judged":
        folder = Path(self._folder.name)
        binary, self._faults = folder / "answers", folder / "faults"
        build = ["go", "build", "-trimpath", "-o", str(binary), "./interop/answers"]
        subprocess.run(build, cwd=paths.REPOSITORY, check=True)
        command = [str(binary), "-server", self._server.uri, "-specification", str(specification())]
        command += ["-management", str(MANAGEMENT), "-faults", str(self._faults)]
        self._process = Process(command, folder / "log")
        self.uri = self._process.wait_for(r"judging answers at (http://\S+)", START_SECONDS_MAX).group(1)
        return self

    def __exit__(self, *_) -> None:
        status = self._process.stop()
        faults = self._faults.read_text().splitlines()
        tail = self._process.tail()
        self._folder.cleanup()
        if status != 0:
            raise ServerError(f"the proxy that judges answers ended with {status}:\n{tail}")
        if faults:
            shown = "\n".join(faults[:FAULTS_SHOWN_MAX])
            raise ServerError(f"{len(faults)} answers do not fit their OpenAPI file:\n{shown}")
