"""A session of Trino's that outlives its credentials, which are good for seconds here."""

import time

import pytest
from harness import s3
from harness.compare import ordered
from harness.delegated import VENDED, Delegated, trino_catalog
from harness.impatient import Impatient

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66
LIVES_SECONDS = 20


def test_session_outlives_its_credentials(engine):
    """Each statement loads its table, and with that gets a credential that has not ended."""
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS, LIVES_SECONDS) as storage, Delegated(storage, VENDED) as running:
        catalog = engine.add(trino_catalog(running))
        table = f"{catalog}.renewed.events"
        engine.execute(f"CREATE SCHEMA {catalog}.renewed")
        engine.execute(f"CREATE TABLE {table} AS SELECT 1 AS id")
        for number in (2, 3):
            time.sleep(LIVES_SECONDS + 1)
            engine.execute(f"INSERT INTO {table} VALUES {number}")
        assert ordered(engine.execute(f"SELECT * FROM {table}")) == [(1,), (2,), (3,)]
        assert storage.refused == [], "a request with a credential that had ended"
