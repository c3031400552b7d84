"""The program of docs/guide/maintain.md that compacts, and its two commands, run as they stand there but for the address."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from harness import clients, paths, server
from harness.compare import rows

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]

COMMAND_SECONDS_MAX = 120
# A name that does harm where it is put into a script or into SQL.
HOSTILE = """x'; DROP TABLE y; --"$(touch pwned)`touch pwned`"""


@pytest.fixture(scope="module")
def moorage():
    with server.Moorage() as started:
        yield started


def blocks() -> tuple[str, list[str]]:
    """The program, and the commands that run it."""
    guide = (paths.REPOSITORY / "docs" / "guide" / "maintain.md").read_text()
    section = guide.split("## Compact with a program", 1)[1].split("\n## ", 1)[0]
    program = re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)
    commands = re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1)
    return program, commands.strip().splitlines()


def run(moorage, folder: Path, command: str) -> str:
    """Runs a command line of the guide, with moorage and this Python where a shell looks for them."""
    path = os.pathsep.join([str(moorage.binary.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command.replace("http://localhost:8181", moorage.uri),
        shell=True, capture_output=True, text=True, cwd=folder, timeout=COMMAND_SECONDS_MAX, check=False,
        env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_compaction_of_the_guide(moorage, tmp_path):
    program, (enable, work) = blocks()
    (tmp_path / "compact.py").write_text(program)
    (tmp_path / "compact.py").chmod(0o755)
    iceberg = clients.pyiceberg_catalog(moorage)
    iceberg.create_namespace("small")
    table = iceberg.create_table(("small", HOSTILE), schema=pa.schema([("id", pa.int64())]))
    for n in range(6):
        table.append(pa.table({"id": pa.array([n], pa.int64())}))
    assert len(table.inspect.files()) == 6

    run(moorage, tmp_path, enable)
    due_now(moorage)
    run(moorage, tmp_path, work + " --once")

    table.refresh()
    assert len(table.inspect.files()) == 1
    assert rows(table, "id") == [(n,) for n in range(6)]
    assert not (tmp_path / "pwned").exists()
    assert run(moorage, tmp_path, work + " --once") == "nothing is due\n"


def due_now(moorage) -> None:
    """Has the server look at the table now, in the place of an hour without commits."""
    name = '"' + HOSTILE.replace('"', '""') + '"'
    command = [str(moorage.binary), "maintain", "now", "table", f"default.small.{name}", "--kind", "compaction", "--uri", moorage.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
