"""A warehouse in S3. Clients are given keys; everything else they learn from the server."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import eventually, rows
from pyiceberg.expressions import EqualTo
from pyiceberg.types import StringType

pytestmark = pytest.mark.moorage_only


@pytest.fixture
def lake(lake_server):
    """A new PyIceberg catalog, whose FileIO has nothing but the keys."""
    return clients.pyiceberg_catalog(lake_server)


@pytest.mark.smoke
def test_life_of_a_table_in_s3(lake, lake_files):
    lake.create_namespace("life")
    table = lake.create_table("life.events", schema=pa.schema([pa.field("id", pa.int64())]))
    assert table.location() == "s3://lake/warehouse/life/events"
    assert table.metadata_location.startswith("s3://lake/warehouse/life/events/metadata/00000-")
    table.append(pa.table({"id": [1, 2, 3]}))
    with table.update_schema() as update:
        update.add_column("note", StringType())
    table.append(pa.table({"id": [4], "note": ["four"]}))
    table.delete(EqualTo("id", 2))
    assert rows(lake.load_table("life.events"), "id", "note") == [(1, None), (3, None), (4, "four")]

    lake.rename_table("life.events", "life.renamed")
    assert len(lake_files.list("s3://lake/warehouse/life/events")) > 8
    lake.purge_table("life.renamed")
    assert eventually(lambda: lake_files.list("s3://lake/warehouse/life/events") == [])
    lake.drop_namespace("life")


def test_drop_keeps_the_files(lake, lake_files):
    lake.create_namespace("kept")
    table = lake.create_table("kept.events", schema=pa.schema([pa.field("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    last = table.metadata_location
    lake.drop_table("kept.events")
    assert lake.register_table("kept.again", last).metadata_location == last
    assert rows(lake.load_table("kept.again")) == [(1,)]


@pytest.mark.parametrize("name", ["a b", "a%20b", "a+b", "é", "日本語", "a/b", "a.b", "a'b", "100%"])
def test_names(lake, numbers, name):
    """A name is escaped in the location, and the file system of the client takes that as it is."""
    namespace = f"names_{next(numbers)}"
    lake.create_namespace((namespace, name))
    table = lake.create_table((namespace, name, name), schema=pa.schema([pa.field("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert rows(lake.load_table((namespace, name, name))) == [(1,)]


def test_location_of_the_client(lake, lake_files):
    """Other spellings of the scheme are kept as they are sent, and mean the same place."""
    lake.create_namespace("spelt")
    table = lake.create_table(
        "spelt.events", schema=pa.schema([pa.field("id", pa.int64())]), location="s3a://lake/warehouse/elsewhere"
    )
    table.append(pa.table({"id": [1]}))
    assert lake.load_table("spelt.events").location() == "s3a://lake/warehouse/elsewhere"
    assert rows(lake.load_table("spelt.events")) == [(1,)]
    assert lake_files.list("s3://lake/warehouse/elsewhere/data")
    with pytest.raises(Exception, match="location"):
        lake.create_table(
            "spelt.twin", schema=pa.schema([pa.field("id", pa.int64())]), location="s3://lake/warehouse/elsewhere/in"
        )
    with pytest.raises(Exception, match="[Ll]ocation"):
        lake.create_table(
            "spelt.outside", schema=pa.schema([pa.field("id", pa.int64())]), location="s3://lake/other/events"
        )
