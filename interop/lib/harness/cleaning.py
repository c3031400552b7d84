"""Expiry and orphan removal after the writers of a test are done. The test then checks that no row is lost."""

import os
import subprocess
import time
from pathlib import Path
from urllib.parse import urlparse

from harness.compare import eventually
from harness.history import line
from harness.server import environment

OLD_SECONDS = 30 * 24 * 3600
COMMAND_SECONDS_MAX = 120


def expire_all_but_last(table) -> None:
    """Has PyIceberg expire all snapshots of a table except the last one."""
    expire = table.maintenance.expire_snapshots()
    for snapshot in line(table)[:-1]:
        expire = expire.by_id(snapshot.snapshot_id)
    expire.commit()


def plant_orphan(location: str) -> Path:
    """Creates an unreferenced file in a table's folder.

    It makes all files there a month old, because no client removes recent ones.
    """
    folder = Path(urlparse(location).path)
    orphan = folder / "data" / "orphan.parquet"
    orphan.write_bytes(b"PAR1")
    ago = time.time() - OLD_SECONDS
    for path in folder.rglob("*"):
        os.utime(path, (ago, ago))
    return orphan


def remove_orphans(server, table: str) -> None:
    """Has the server remove the orphans of a table that are a day old, for clients that cannot."""
    name = f"{server.warehouse}.{table}"
    # After expiry by a client that deletes no files, most files are orphans. plant_orphan makes them older than the table, so
    # the server keeps them unless --adopt declares that they belong to it.
    _command(server, "run", "orphans", name, "--older-than", "24h", "--quarantine", "0s", "--adopt", "--confirm")
    assert eventually(lambda: "orphans done" in _command(server, "status", "table", name)), _command(server, "status", "table", name)


def clean(server, table) -> None:
    """Expires all snapshots of a PyIceberg table except the last one.

    It removes orphans if the test can set the age of files.
    """
    expire_all_but_last(table)
    if not server.files.in_s3:
        orphan = plant_orphan(table.location())
        remove_orphans(server, ".".join(table.name()))
        assert not orphan.exists(), "the server removed no orphan"


def _command(server, *words: str) -> str:
    """Runs a command of `moorage maintain` and returns its output."""
    command = [str(server.binary), "maintain", *words, "--uri", server.uri]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(None), timeout=COMMAND_SECONDS_MAX)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout
