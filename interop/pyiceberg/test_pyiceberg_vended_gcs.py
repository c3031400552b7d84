"""PyIceberg without a key of Google Cloud Storage: the catalog gives it tokens for one table at a time."""

import pyarrow as pa
import pytest
from harness import clients, google
from harness.compare import eventually, rows
from harness.delegated import keys_told
from harness.proxy import Proxy
from pyiceberg.expressions import EqualTo

pytestmark = pytest.mark.moorage_only

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "place": ["oslo", "rome", "bern"]})


@pytest.fixture
def vended():
    with google.Cloud() as cloud, google.InGoogle(cloud) as running, Proxy(running) as watched:
        yield watched


def test_life_of_a_table(vended):
    lake = clients.pyiceberg_catalog(vended)
    lake.create_namespace("py_vended")
    lake.create_table("py_vended.events_two", schema=ROWS.schema).append(ROWS)
    table = lake.create_table("py_vended.events", schema=ROWS.schema)
    table.append(ROWS)
    table.delete(EqualTo("id", 2))
    table.upsert(pa.table({"id": pa.array([3, 4], pa.int64()), "place": ["lima", "kiev"]}), join_cols=["id"])
    assert rows(lake.load_table("py_vended.events")) == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    table.overwrite(ROWS)
    assert rows(lake.load_table("py_vended.events")) == [(1, "oslo"), (2, "rome"), (3, "bern")]
    own, sibling = (lake.load_table(f"py_vended.{name}") for name in ["events", "events_two"])
    google.check_reach(vended.storage, keys_told(vended, "events")["gcs.oauth2.token"], own.location(), sibling.location())
    [foreign] = [task.file.file_path for task in sibling.scan().plan_files()]
    with pytest.raises(OSError, match="PERMISSION_DENIED|403|Forbidden|access"):
        own.io.new_input(foreign).open().read()
    lake.purge_table("py_vended.events")
    assert eventually(lambda: vended.storage.list(own.location()) == [])
    lake.drop_table("py_vended.events_two")
    lake.drop_namespace("py_vended")
