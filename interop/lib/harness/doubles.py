"""Processes that replace external services in tests.

Each prints a line when it is ready, and exits at the end of its standard input.
"""

import subprocess
import sys
from pathlib import Path

from harness import paths


class Started:
    """A process that replaces an external service, as a context manager."""

    # The working directory; None: the test's.
    folder: Path | None = None
    url = ""

    def command(self) -> list[str]:
        """The command that starts the process."""
        raise NotImplementedError

    def use(self, line: str) -> None:
        """Handles the line that the process printed, and creates the initial content for tests."""
        raise NotImplementedError

    def __enter__(self):
        command = self.command()
        self._child = subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # keeps Ctrl-C from it; its parent stops it properly
        )
        line = self._child.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start: its reason is above")
        self.use(line)
        return self

    def __exit__(self, *_) -> None:
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class Scripted(Started):
    """A Started that a script in scripts/ runs. The line that it prints is its URL."""

    script: str

    def command(self) -> list[str]:
        return [sys.executable, str(paths.REPOSITORY / "scripts" / self.script)]

    def use(self, line: str) -> None:
        self.url = line
        self.make()

    def make(self) -> None:
        """Creates an empty bucket."""
        raise NotImplementedError
