"""A warehouse in S3, read and written by Flink. It is given keys; everything else it learns from the server."""

import pytest
from harness import flink
from harness.compare import eventually

pytestmark = pytest.mark.moorage_only


@pytest.mark.parametrize("io", [{}, {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}], ids=["default", "S3FileIO"])
def test_life_of_a_table_in_s3(session, feed, lake_server, lake_files, numbers, io):
    batch = session(flink.BATCH)
    batch.run(flink.catalog("lake", lake_server, **io))
    namespace = f"of_flink{next(numbers)}"
    table = f"lake.{namespace}.events"
    batch.run(f"CREATE DATABASE lake.{namespace}")
    batch.run(
        f"CREATE TABLE {table} (id INT, place STRING, PRIMARY KEY (id, place) NOT ENFORCED) PARTITIONED BY (place) "
        "WITH ('write.upsert.enabled' = 'true')"
    )
    batch.run(f"INSERT INTO {table} VALUES (1, 'a b/%'), (2, 'rome')")
    assert sorted(batch.run(f"SELECT * FROM {table}")) == [(1, "a b/%"), (2, "rome")]

    streams = session(flink.STREAMING)
    streams.run(flink.catalog("lake", lake_server, **io))
    job = streams.start(f"INSERT INTO {table} SELECT * FROM {feed.declare(streams, 'id INT, place STRING')}")
    for id in (2, 3, 3):
        feed.put({"id": id, "place": "rome"})
    expected = [(1, "a b/%"), (2, "rome"), (3, "rome")]
    assert eventually(lambda: sorted(batch.run(f"SELECT * FROM {table}")) == expected)
    job.stop()
    assert sorted(batch.run(f"SELECT * FROM {table}")) == expected

    location = f"s3://lake/warehouse/{namespace}/events"
    assert len(lake_files.list(location)) > 8
    batch.run(f"DROP TABLE {table}")
    batch.run(f"DROP DATABASE lake.{namespace}")
    assert (namespace,) not in batch.run("SHOW DATABASES IN lake")
