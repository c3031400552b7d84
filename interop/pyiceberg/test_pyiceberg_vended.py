"""PyIceberg without a key of the storage: the catalog gives it credentials for one table at a time."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import eventually, rows
from harness.delegated import check_reach, keys_told, lives_by_pyiceberg

pytestmark = pytest.mark.moorage_only

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "place": ["oslo", "rome", "bern"]})


@pytest.mark.smoke
def test_life_of_a_table(vended):
    lake = clients.pyiceberg_catalog(vended)
    own, sibling = (table.location() for table in lives_by_pyiceberg(lake))
    check_reach(vended.storage, keys_told(vended, "events"), own, sibling)
    lake.purge_table("py_vended.events")
    assert eventually(lambda: vended.storage.list(own) == [])
    lake.drop_table("py_vended.events_two")
    lake.drop_namespace("py_vended")


def test_compaction_and_snapshots(vended):
    """What PyIceberg has for maintenance works with keys that cannot touch the catalog's own files."""
    from datetime import datetime, timezone

    lake = clients.pyiceberg_catalog(vended)
    lake.create_namespace("py_kept")
    table = lake.create_table("py_kept.events", schema=ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    table.maintenance.expire_snapshots().older_than(datetime.now(timezone.utc)).commit()
    assert len(lake.load_table("py_kept.events").snapshots()) == 1
    assert len(rows(lake.load_table("py_kept.events"))) == 9
