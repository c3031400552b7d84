"""A job of PyIceberg's that outlives its credentials, which are good for seconds here."""

import time

import pyarrow as pa
import pytest
from harness import clients, s3
from harness.compare import rows
from harness.delegated import VENDED, Delegated
from harness.impatient import Impatient

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66
LIVES_SECONDS = 5

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def test_job_loads_its_table_again():
    """A table keeps the credential that it was loaded with. Its refresh, which a job has to ask for, brings another."""
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS, LIVES_SECONDS) as storage, Delegated(storage, VENDED) as running:
        lake = clients.pyiceberg_catalog(running)
        lake.create_namespace("renewed")
        table = lake.create_table("renewed.events", schema=ROWS.schema)
        table.append(ROWS)
        time.sleep(LIVES_SECONDS + 1)
        with pytest.raises(OSError, match="ACCESS_DENIED|ExpiredToken|403"):
            rows(table)
        assert storage.refused, "the storage has seen the old credential"
        late = len(storage.refused)
        assert rows(table.refresh()) == [(1,), (2,)]
        table.append(ROWS)
        assert rows(lake.load_table("renewed.events")) == [(1,), (1,), (2,), (2,)]
        assert len(storage.refused) == late, "a request with a credential that had ended"
