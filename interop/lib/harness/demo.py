"""`moorage demo` as a new user starts it: with a fresh folder, and with its printed commands pasted."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.server import Process, ServerError, build, environment

# Only a hanging process takes this long.
READY_SECONDS_MAX = 180
CONNECT_SECONDS_MAX = 180


class Demo:
    """`moorage demo` on a free port; use it as a context manager."""

    def __init__(self):
        self.binary = build()
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-demo-"))
        self.log = self.folder / "demo.log"
        self.uri = ""

    def __enter__(self) -> "Demo":
        command = [str(self.binary), "demo", "--data", str(self.folder / "data"), "--listen", "127.0.0.1:0"]
        self._process = Process(command, self.log, environment(None))
        # The last line of the output, so that the log has all of it.
        self._process.wait_for(r"^More ", READY_SECONDS_MAX)
        self.uri = re.search(r"^Moorage demo at (http://\S+),", self.printed(), re.M).group(1)
        return self

    def __exit__(self, *_) -> None:
        status = self._process.stop()
        if status != 0:
            raise ServerError(f"exit status {status} after SIGTERM:\n{self._process.tail()}")
        shutil.rmtree(self.folder)

    def printed(self) -> str:
        return self.log.read_text()

    def block(self, title: str) -> str:
        """The lines under a title in the output, without indentation."""
        found = re.search(rf"^{title} .*\n(?: .*\n)*", self.printed(), re.M).group(0)
        return "\n".join(line[9:] for line in found.splitlines())

    def connect(self, *words: str) -> str:
        """The output of `moorage connect`."""
        return subprocess.run(
            [str(self.binary), "connect", "--uri", self.uri, *words],
            env={k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")},
            check=True,
            capture_output=True,
            text=True,
            timeout=CONNECT_SECONDS_MAX,
        ).stdout
