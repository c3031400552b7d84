"""Processes that stand for outside services in a test: each prints a line when it answers, and ends with its standard input."""

import subprocess
import sys
from pathlib import Path

from harness import paths


class Started:
    """Such a process, as a context manager."""

    # Where it runs; None: where the test does.
    folder: Path | None = None
    url = ""

    def command(self) -> list[str]:
        """What starts it."""
        raise NotImplementedError

    def use(self, line: str) -> None:
        """Takes what it printed, and makes what a test finds there."""
        raise NotImplementedError

    def __enter__(self):
        command = self.command()
        self._child = subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for whoever stops it in order
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
    """One that a script of scripts/ runs. The line that it prints is its URL."""

    script: str

    def command(self) -> list[str]:
        return [sys.executable, str(paths.REPOSITORY / "scripts" / self.script)]

    def use(self, line: str) -> None:
        self.url = line
        self.make()

    def make(self) -> None:
        """Makes an empty bucket."""
        raise NotImplementedError
