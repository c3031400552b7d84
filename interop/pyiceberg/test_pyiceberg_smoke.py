"""The life of one table, as a first user would try it."""

import pyarrow as pa
import pytest
from harness.compare import rows
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import StringType

pytestmark = pytest.mark.smoke


def test_life_of_a_table(iceberg):
    iceberg.create_namespace("smoke_pyiceberg")
    first = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = iceberg.create_table("smoke_pyiceberg.events", schema=first.schema)
    table.append(first)
    start = table.current_snapshot().snapshot_id

    with table.update_schema() as update:
        update.add_column("note", StringType())
    table.append(pa.table({"id": pa.array([4], pa.int64()), "note": ["four"]}))
    everything = [(1, None), (2, None), (3, None), (4, "four")]
    assert rows(iceberg.load_table("smoke_pyiceberg.events"), "id", "note") == everything
    assert rows(table, snapshot_id=start) == [(1,), (2,), (3,)]

    table.delete("id = 2")
    assert rows(iceberg.load_table("smoke_pyiceberg.events"), "id") == [(1,), (3,), (4,)]

    iceberg.drop_table("smoke_pyiceberg.events")
    iceberg.drop_namespace("smoke_pyiceberg")
    with pytest.raises(NoSuchTableError):
        iceberg.load_table("smoke_pyiceberg.events")
    assert ("smoke_pyiceberg",) not in iceberg.list_namespaces()
