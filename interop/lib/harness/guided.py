"""The compaction programs of docs/guide/maintain.md and their commands, unchanged except for the address."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from harness import clients, paths
from harness.compare import rows

COMMAND_SECONDS_MAX = 240
# A name that does harm in a script or in SQL if it is not quoted.
HOSTILE = """x'; DROP TABLE y; --"$(touch pwned)`touch pwned`"""
FILES = 6


def blocks(heading: str) -> tuple[str, list[str]]:
    """The program in a section of the guide, and the commands that run it."""
    guide = (paths.REPOSITORY / "docs" / "guide" / "maintain.md").read_text()
    section = guide.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    program = re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)
    commands = re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1)
    return program, commands.strip().splitlines()


def run(moorage, folder: Path, command: str, **environment: str) -> str:
    """Runs a command line of the guide, with moorage and this Python on the PATH."""
    path = os.pathsep.join([str(moorage.binary.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        shell=True, capture_output=True, text=True, cwd=folder, timeout=COMMAND_SECONDS_MAX, check=False,
        env=os.environ | {"PATH": path, "MOORAGE_URI": moorage.uri} | environment,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def due_now(moorage) -> None:
    """Has the server check the table now, instead of after an hour without commits."""
    name = '"' + HOSTILE.replace('"', '""') + '"'
    command = [str(moorage.binary), "maintain", "run", "compaction", f"default.small.{name}", "--by-policy", "--uri", moorage.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def compacts(moorage, folder: Path, heading: str, program: str, **environment: str) -> None:
    """Has the program of a section compact a table of small files, and checks the result."""
    text, (enable, work) = blocks(heading)
    (folder / program).write_text(text)
    (folder / program).chmod(0o755)
    iceberg = clients.pyiceberg_catalog(moorage)
    iceberg.create_namespace("small")
    table = iceberg.create_table(("small", HOSTILE), schema=pa.schema([("id", pa.int64())]))
    for n in range(FILES):
        table.append(pa.table({"id": pa.array([n], pa.int64())}))
    assert len(table.inspect.files()) == FILES

    assert f"{FILES} files to be compacted" in run(moorage, folder, enable)
    due_now(moorage)
    run(moorage, folder, work + " --once", **environment)

    table.refresh()
    assert len(table.inspect.files()) == 1
    assert rows(table, "id") == [(n,) for n in range(FILES)]
    assert not (folder / "pwned").exists()
    assert run(moorage, folder, work + " --once", **environment) == "nothing is due\n"
