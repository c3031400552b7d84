"""A job of Trino's that outlives its credentials, which a proxy before MinIO ends when it is told to."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import s3
from harness.compare import eventually
from harness.delegated import VENDED, Delegated, trino_catalog
from harness.impatient import Impatient
from harness.proxy import Proxy
from harness.trino import told
from trino.exceptions import TrinoQueryError

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66

# Rows that take a moment to count.
SLOW = "SELECT count(*) FROM UNNEST(sequence(1, 3000)) a (x) CROSS JOIN UNNEST(sequence(1, 3000)) b (y) WHERE sqrt(x * y) > 0"


@pytest.fixture(scope="module")
def world():
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS) as storage, Delegated(storage, VENDED) as running:
        yield storage, running


def test_job_outlives_its_credentials(engine, world):
    """Each statement loads its tables, and with that gets credentials that have not ended."""
    storage, running = world
    catalog = engine.add(trino_catalog(running))
    engine.execute(f"CREATE SCHEMA {catalog}.renewed")
    engine.execute(f"CREATE TABLE {catalog}.renewed.events AS SELECT 1 AS id")
    for number in range(2, 5):
        storage.end()
        engine.execute(f"INSERT INTO {catalog}.renewed.events VALUES {number}")
        storage.end()
        assert len(engine.execute(f"SELECT * FROM {catalog}.renewed.events")) == number


def test_statement_outlives_its_credential(engine, world):
    """One statement keeps its credential to its end: Trino asks for no other. It fails, and the table is as it was."""
    storage, running = world
    with Proxy(running) as watched, ThreadPoolExecutor(1) as pool:
        catalog = engine.add(trino_catalog(watched))
        engine.execute(f"CREATE SCHEMA {catalog}.long")
        engine.execute(f"CREATE TABLE {catalog}.long.events AS SELECT BIGINT '1' AS id")
        before = len(watched.seen)
        statement = pool.submit(engine.execute, f"INSERT INTO {catalog}.long.events {SLOW}")
        assert eventually(lambda: any(exchange.path.endswith("/tables/events") for exchange in watched.seen[before:]))
        storage.end()
        with pytest.raises(TrinoQueryError) as failed:
            statement.result()
        assert "expired" in told(failed.value), told(failed.value)
        assert engine.execute(f"SELECT * FROM {catalog}.long.events") == [(1,)]
        assert not [exchange for exchange in watched.seen if exchange.path.endswith("/credentials")]
