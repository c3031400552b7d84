"""Expiry and removal of orphans, when the writers of a test are done. The test then looks whether every row is left."""

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
    """Lets PyIceberg expire the snapshots of a table's line except the last."""
    expire = table.maintenance.expire_snapshots()
    for snapshot in line(table)[:-1]:
        expire = expire.by_id(snapshot.snapshot_id)
    expire.commit()


def plant_orphan(location: str) -> Path:
    """Makes a file in a table's folder that nothing names, and all files there a month old: no client removes young ones."""
    folder = Path(urlparse(location).path)
    orphan = folder / "data" / "orphan.parquet"
    orphan.write_bytes(b"PAR1")
    ago = time.time() - OLD_SECONDS
    for path in folder.rglob("*"):
        os.utime(path, (ago, ago))
    return orphan


def remove_orphans(server, table: str) -> None:
    """Lets the server remove the orphans of a table that are a day old, for clients that cannot."""
    name = f"{server.warehouse}.{table}"
    # After expiry by a client that deletes no files, most are orphans. plant_orphan makes the files older than the table, so the
    # server keeps them unless told that they belong to it.
    _command(server, "run", "orphans", name, "--older-than", "24h", "--quarantine", "0s", "--adopt", "--confirm")
    assert eventually(lambda: "orphans done" in _command(server, "status", "table", name)), _command(server, "status", "table", name)


def clean(server, table) -> None:
    """Expires all snapshots of a PyIceberg table except the last, and removes orphans where a test can make files old."""
    expire_all_but_last(table)
    if not server.files.in_s3:
        orphan = plant_orphan(table.location())
        remove_orphans(server, ".".join(table.name()))
        assert not orphan.exists(), "the server removed no orphan"


def _command(server, *words: str) -> str:
    """Runs a command of `moorage maintain` and returns what it printed."""
    command = [str(server.binary), "maintain", *words, "--uri", server.uri]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(None), timeout=COMMAND_SECONDS_MAX)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout
