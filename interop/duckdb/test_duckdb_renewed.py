"""A job of DuckDB's that outlives its credentials, which are good for seconds here."""

import time

import pytest
from harness import s3
from harness.delegated import VENDED, Delegated, duckdb_connection
from harness.impatient import Impatient

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66
LIVES_SECONDS = 5


def test_job_outlives_its_credentials():
    """Each statement loads its table, and with that gets a credential that has not ended."""
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS, LIVES_SECONDS) as storage, Delegated(storage, VENDED) as running:
        with duckdb_connection(running) as duck:
            duck.execute("CREATE SCHEMA ice.renewed")
            duck.execute("CREATE TABLE ice.renewed.events AS SELECT 1 AS id")
            time.sleep(LIVES_SECONDS + 1)
            duck.execute("INSERT INTO ice.renewed.events VALUES (2)")
            assert duck.execute("SELECT count(*) FROM ice.renewed.events").fetchall() == [(2,)]
