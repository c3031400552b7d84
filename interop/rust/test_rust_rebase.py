"""Writers that do not try again, on a table that asks the server to put late appends on top of the head."""

import pytest
from harness.cleaning import plant_orphan
from harness.compare import ordered
from harness.history import check_line, moved
from harness.writers import each_once, in_parallel

pytestmark = [pytest.mark.moorage_only, pytest.mark.on_disk_only]
ROWS_PER_WRITER = 8


@pytest.fixture(params=[2, 3], ids=["format 2", "format 3"])
def table(request, sql, namespace):
    """A table whose writers give up at the first refusal."""
    name = f"{namespace}.events"
    sql(
        f"CREATE TABLE {name} (writer BIGINT, number BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '{request.param}', "
        "'commit.retry.num-retries' = '0', 'moorage.append-rebase' = 'on-all')"
    )
    return name


def test_writers_who_do_not_try_again(request, rust, sql, iceberg, table):
    """Spark reads what they wrote, and removes orphans after iceberg-rust has expired snapshots, because that cannot."""
    in_parallel(lambda writer: rust("append", table, writer, ROWS_PER_WRITER))
    expected = each_once(ROWS_PER_WRITER)

    def check_rows() -> None:
        assert sql(f"SELECT * FROM {table}") == expected
        assert ordered(tuple(map(int, line.split())) for line in rust("rows", table)) == expected

    check_rows()
    loaded = iceberg.load_table(table)
    check_line(loaded, len(expected))
    assert loaded.current_snapshot().summary["total-records"] == str(len(expected))
    assert moved(loaded), "nobody was late"
    if "format 3" in request.node.name:
        ids = sql(f"SELECT _row_id FROM {table}")
        assert len(set(ids)) == len(expected), f"rows share an id: {ids}"

    rust("expire", table)
    check_line(iceberg.load_table(table), 1)
    orphan = plant_orphan(loaded.location())
    sql(f"CALL ice.system.remove_orphan_files(table => '{table}')")
    assert not orphan.exists(), "Spark removed no orphan"
    check_rows()
    rust("append", table, 9, 1)
    expected.append((9, 0))
    check_rows()
