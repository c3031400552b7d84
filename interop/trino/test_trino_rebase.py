"""Writers that do not try again, on a table that asks the server to put late appends on top of the head."""

import pytest
from harness.history import check_line, moved, parents
from harness.trino import metadata
from harness.writers import each_once, in_parallel, insert

pytestmark = pytest.mark.moorage_only
INSERTS_PER_WRITER = 4


def test_writers_who_do_not_try_again(sql, catalogs, iceberg, catalog_server, namespace):
    """Trino's own expiry and orphan removal leave every row. PyIceberg sets the property, which Trino does not know."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (writer INTEGER, number INTEGER) WITH (max_commit_retry = 0)")
    with iceberg.load_table(name).transaction() as change:
        change.set_properties({"moorage.append-rebase": "on-all"})
    in_parallel(lambda writer: insert(sql, f"{catalogs[writer]}.{name}", writer, INSERTS_PER_WRITER))
    expected = each_once(INSERTS_PER_WRITER)
    assert sql(f"SELECT * FROM {name}") == expected
    table = iceberg.load_table(name)
    check_line(table, len(expected) + 1)  # Trino makes a table with an empty snapshot
    assert sql(f"SELECT snapshot_id, parent_id FROM {metadata(name, 'snapshots')}") == parents(table)
    assert moved(table), "nobody was late"
    with table.io.new_output(f"{table.location()}/data/stray.parquet").create() as stray:
        stray.write(b"nobody's")
    sql(f"ALTER TABLE {name} EXECUTE expire_snapshots(retention_threshold => '0s')")
    sql(f"ALTER TABLE {name} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert not [file for file in catalog_server.files.list(table.location()) if "/stray." in file]
    assert len(iceberg.load_table(name).snapshots()) == 1
    assert sql(f"SELECT * FROM {name}") == expected
    sql(f"INSERT INTO {name} VALUES (9, 9)")
    assert sql(f"SELECT * FROM {name}") == [*expected, (9, 9)]
