"""Spark without a key of the storage: the catalog signs each of its requests, on a server that makes no credentials."""

import pytest
from harness import clients
from harness.delegated import ASKED, SIGNED, signatures

pytestmark = pytest.mark.moorage_only

# The least that S3 takes for a part but the last, so that 100 MB are twenty requests.
PART_BYTES = 5 << 20


@pytest.fixture
def lake(spark, signing, numbers):
    """A catalog that has its requests signed. By itself Spark would delete files after the table that they are signed for."""
    name = f"signed{next(numbers)}"
    options = {ASKED: SIGNED, "rest-catalog-purge": "true", "s3.multipart.part-size-bytes": str(PART_BYTES)}
    clients.add_spark_catalog(spark, name, signing, **options)
    return name


def test_life_of_a_table(sql, signing, lake):
    events = f"{lake}.spark_signed.events"
    sql(f"CREATE NAMESPACE {lake}.spark_signed")
    sql(f"CREATE TABLE {events} (id INT, place STRING) USING iceberg")
    sql(f"INSERT INTO {events} VALUES (1, 'oslo'), (2, 'rome'), (3, 'bern')")
    sql(f"DELETE FROM {events} WHERE id = 2")
    sql(
        f"MERGE INTO {events} e USING (SELECT 3 AS id, 'lima' AS place UNION ALL SELECT 4, 'kiev') s ON e.id = s.id "
        "WHEN MATCHED THEN UPDATE SET place = s.place WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql(f"SELECT * FROM {events}") == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    location = clients.pyiceberg_catalog(signing).load_table("spark_signed.events").location()
    # SeaweedFS does not look at the body of a bulk delete, so that none is signed, and the files of what expired stay.
    before = signing.storage.list(location)
    sql(f"CALL {lake}.system.rewrite_data_files(table => 'spark_signed.events', options => map('rewrite-all', 'true'))")
    sql(f"CALL {lake}.system.expire_snapshots(table => 'spark_signed.events', older_than => TIMESTAMP '2100-01-01 00:00:00')")
    assert set(before) <= set(signing.storage.list(location))
    made = signatures(signing)
    bulk = [status for method, uri, _, status in made if method == "POST" and uri.endswith("?delete")]
    assert set(bulk) == {403}
    assert len([status for *_, status in made if status != 200]) == len(bulk)
    assert sql(f"SELECT * FROM {events}") == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    made = signatures(signing)
    sql(f"DROP TABLE {events} PURGE")
    assert [exchange.path for exchange in signing.seen if exchange.method == "DELETE"][0].endswith("purgeRequested=true")
    assert signatures(signing) == made, "Spark deletes nothing by itself"
    sql(f"DROP NAMESPACE {lake}.spark_signed")


def test_upload_in_parts(sql, signing, lake):
    """One file of more than 100 MB, whose parts are signed one by one."""
    table = f"{lake}.spark_parts.events"
    sql(f"CREATE NAMESPACE {lake}.spark_parts")
    sql(f"CREATE TABLE {table} (id BIGINT, text STRING) USING iceberg TBLPROPERTIES ('write.parquet.compression-codec' = 'uncompressed')")
    sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, sha2(CAST(id AS STRING), 512) FROM range(800000)")
    [(size,)] = sql(f"SELECT max(file_size_in_bytes) FROM {table}.files")
    assert size > 100 << 20
    assert sql(f"SELECT count(*), count(DISTINCT text) FROM {table}") == [(800_000, 800_000)]
    made = signatures(signing)
    assert {status for *_, status in made} == {200}
    parts = {uri for method, uri, *_ in made if method == "PUT" and "partNumber=" in uri}
    assert len(parts) >= size // PART_BYTES
    assert any(method == "POST" and "uploadId=" in uri for method, uri, *_ in made)
