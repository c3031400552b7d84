"""A job of DuckDB's that outlives its credentials, which are good for seconds here."""

import time

import pytest
from harness import s3
from harness.delegated import VENDED, Delegated, duckdb_connection
from harness.impatient import Impatient
from harness.proxy import Proxy

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66
LIVES_SECONDS = 5


def test_job_outlives_its_credentials():
    """Each statement loads its table, and so does a transaction whose credential has ended."""
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS, LIVES_SECONDS) as storage, Delegated(storage, VENDED) as running:
        with Proxy(running) as watched, duckdb_connection(watched) as duck:

            def count() -> int:
                return duck.execute("SELECT count(*) FROM ice.renewed.events").fetchall()[0][0]

            duck.execute("CREATE SCHEMA ice.renewed")
            duck.execute("CREATE TABLE ice.renewed.events AS SELECT 1 AS id")
            time.sleep(LIVES_SECONDS + 1)
            duck.execute("INSERT INTO ice.renewed.events VALUES (2)")
            assert count() == 2
            duck.execute("BEGIN")
            assert count() == 2
            loads = loads_of(watched)
            time.sleep(LIVES_SECONDS + 1)
            assert count() == 2
            duck.execute("COMMIT")
            assert loads_of(watched) > loads, "the transaction was given no new credential"


def loads_of(watched) -> int:
    return len([each for each in watched.seen if each.method == "GET" and each.path.endswith("/tables/events")])
