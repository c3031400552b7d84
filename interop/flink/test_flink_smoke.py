"""The life of one table, and a stream into one, as a first user would try them."""

import re

import pytest
from harness.compare import eventually, rows
from harness.flink import BATCH, SAVED, STREAMING, checkpoints

pytestmark = pytest.mark.smoke


def test_life_of_a_table(sql):
    sql("CREATE DATABASE smoke_flink")
    sql("CREATE TABLE smoke_flink.events (id BIGINT, place STRING) PARTITIONED BY (place)")
    sql("INSERT INTO smoke_flink.events VALUES (1, 'oslo'), (2, 'rome')")
    sql("ALTER TABLE smoke_flink.events ADD note STRING")
    sql("INSERT INTO smoke_flink.events VALUES (3, 'oslo', 'three')")
    assert sql("SELECT * FROM smoke_flink.events") == [(1, "oslo", None), (2, "rome", None), (3, "oslo", "three")]
    [(_, start), _] = sql("SELECT committed_at, snapshot_id FROM smoke_flink.`events$snapshots`")
    assert sql(f"SELECT id FROM smoke_flink.events /*+ OPTIONS('snapshot-id' = '{start}') */") == [(1,), (2,)]
    sql("INSERT OVERWRITE smoke_flink.events VALUES (4, 'oslo', 'four')")
    assert sql("SELECT * FROM smoke_flink.events") == [(2, "rome", None), (4, "oslo", "four")]
    sql("ALTER TABLE smoke_flink.events RENAME TO smoke_flink.history")
    assert sql("SHOW TABLES IN smoke_flink") == [("history",)]
    sql("DROP TABLE smoke_flink.history")
    assert sql("SHOW TABLES IN smoke_flink") == []
    sql("DROP DATABASE smoke_flink")
    assert ("smoke_flink",) not in sql("SHOW DATABASES")


def test_stream(sql, session, feed, iceberg, namespace):
    """Rows are put in place of others by a job that is stopped and goes on."""
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INT, place STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('write.upsert.enabled' = 'true')")

    def start(**settings):
        made = session(STREAMING | settings)
        return made.start(f"INSERT INTO {table} SELECT * FROM {feed.declare(made, 'id INT, place STRING')}")

    job = start()
    feed.put({"id": 1, "place": "oslo"}, {"id": 2, "place": "rome"})
    assert eventually(lambda: sql(f"SELECT * FROM {table}") == [(1, "oslo"), (2, "rome")])
    feed.put({"id": 2, "place": "bern"})
    assert eventually(lambda: sql(f"SELECT * FROM {table}") == [(1, "oslo"), (2, "bern")])
    saved = job.stop()
    feed.put({"id": 3, "place": "nice"})
    job = start(**{SAVED: saved})
    assert eventually(lambda: sql(f"SELECT * FROM {table}") == [(1, "oslo"), (2, "bern"), (3, "nice")])
    job.stop()
    assert sql(f"SELECT * FROM {table}") == [(1, "oslo"), (2, "bern"), (3, "nice")]
    assert len(checkpoints(iceberg.load_table(table))) == 2


@pytest.mark.moorage_only
def test_printed_lines(session, iceberg, catalog_server, namespace):
    """The statement for Flink that the server prints when it starts. The keys of a bucket are added."""
    [statement] = re.findall(r"^  (CREATE CATALOG .*\));$", catalog_server.log.read_text(), re.M)
    keys = "".join(f", '{name}' = '{value}'" for name, value in catalog_server.files.client_properties.items())
    batch = session(BATCH)
    batch.run(statement.removesuffix(")") + keys + ")")
    [name] = re.findall(r"CREATE CATALOG (\w+) ", statement)
    batch.run(f"CREATE TABLE {name}.{namespace}.events AS SELECT 1 AS id")
    assert batch.run(f"SELECT * FROM {name}.{namespace}.events") == [(1,)]
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,)]
