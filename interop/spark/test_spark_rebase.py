"""Writers that do not try again, on a table that asks the server to put late appends on top of the head."""

import pytest
from harness import clients
from harness.cleaning import plant_orphan
from harness.compare import rows
from harness.history import check_line, moved, parents
from harness.java import Java
from harness.writers import WRITERS, append, each_once, in_parallel, insert, one_wins

pytestmark = pytest.mark.moorage_only
INSERTS_PER_WRITER = 4
CONSENT = {"header.X-Moorage-Append-Rebase": "on"}
LATER = "TIMESTAMP '2100-01-01 00:00:00'"


@pytest.fixture(params=[2, 3], ids=["format 2", "format 3"])
def table(request, sql, namespace):
    """A table whose writers give up at the first refusal."""
    name = f"{namespace}.events"
    sql(
        f"CREATE TABLE {name} (writer BIGINT, number BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '{request.param}', "
        "'commit.retry.num-retries' = '0', 'moorage.append-rebase' = 'on-all')"
    )
    return name


def check_cleaned(sql, server, table: str, expected: list[tuple]) -> None:
    """Spark's own expiry and orphan removal leave every row, and a table that can be written."""
    sql(f"CALL ice.system.expire_snapshots(table => '{table}', older_than => {LATER}, retain_last => 1)")
    assert sql(f"SELECT * FROM {table}") == expected
    if not server.files.in_s3:
        orphan = plant_orphan(sql(f"SELECT file FROM {table}.metadata_log_entries")[0][0].rsplit("/metadata/", 1)[0])
        sql(f"CALL ice.system.remove_orphan_files(table => '{table}')")
        assert not orphan.exists(), "Spark removed no orphan"
    assert sql(f"SELECT * FROM {table}") == expected
    sql(f"INSERT INTO {table} VALUES (9, 9)")
    assert sql(f"SELECT * FROM {table}") == sorted([*expected, (9, 9)])


def test_writers_who_do_not_try_again(request, sql, catalogs, iceberg, catalog_server, table):
    in_parallel(lambda writer: insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER))
    expected = each_once(INSERTS_PER_WRITER)
    assert sql(f"SELECT * FROM {table}") == expected
    loaded = iceberg.load_table(table)
    check_line(loaded, len(expected))
    assert sql(f"SELECT snapshot_id, parent_id FROM {table}.snapshots") == parents(loaded)
    assert moved(loaded), "nobody was late"
    if "format 3" in request.node.name:
        ids = sql(f"SELECT _row_id FROM {table}")
        assert len(set(ids)) == len(expected), f"rows share an id: {ids}"
    check_cleaned(sql, catalog_server, table, expected)


def test_merging_writers(sql, catalogs, iceberg, catalog_server, table):
    """Two merges of the same manifests cannot both be moved: these writers try again."""
    sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '3', 'commit.retry.num-retries' = '20')"
    )
    in_parallel(lambda writer: insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER))
    expected = each_once(INSERTS_PER_WRITER)
    assert sql(f"SELECT * FROM {table}") == expected
    check_line(iceberg.load_table(table), len(expected))
    check_cleaned(sql, catalog_server, table, expected)


@pytest.fixture
def keyed(sql, namespace):
    """A table in which a key may be there once, and that consents to a rebase for writers that ask for it."""
    name = f"{namespace}.keyed"
    sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES ('moorage.append-rebase' = 'on')")
    sql(f"INSERT INTO {name} VALUES (0)")
    return name


@pytest.mark.smoke
def test_upserts_that_only_insert(spark, catalog_server, keyed):
    """Java sends an upsert that only inserts as an append, and relies on the refusal to validate again: one writer wins."""
    writers = [Java(spark, catalog_server) for _ in range(WRITERS)]
    try:
        upserts = [writer.insert_if_absent(keyed) for writer in writers]
        one_wins(lambda writer: upserts[writer].commit(), lambda fault: "exceptions.ValidationException" in str(fault))
    finally:
        for writer in writers:
            writer.close()


@pytest.mark.smoke
@pytest.mark.parametrize("consent", ["of the writer", "of the table for all"])
def test_what_the_guide_warns_of(spark, sql, catalog_server, keyed, consent):
    """With consent the same upserts all happen, so no such writer may consent, and no such table for its writers."""
    if consent == "of the writer":
        more = CONSENT
    else:
        more = {}
        sql(f"ALTER TABLE {keyed} SET TBLPROPERTIES ('moorage.append-rebase' = 'on-all')")
    writer = Java(spark, catalog_server, **more)
    try:
        for upsert in [writer.upsert(keyed) for _ in range(WRITERS)]:
            writer.commit(upsert)
        assert len(list(writer.load(keyed).snapshots())) == 1 + WRITERS
    finally:
        writer.close()


def test_writers_of_two_engines(sql, catalogs, iceberg, catalog_server, namespace):
    name = f"{namespace}.mixed"
    sql(
        f"CREATE TABLE {name} (writer BIGINT, number BIGINT) USING iceberg TBLPROPERTIES "
        "('commit.retry.num-retries' = '0', 'moorage.append-rebase' = 'on-all')"
    )

    def write(writer: int) -> None:
        if writer % 2:
            insert(sql, f"{catalogs[writer]}.{name}", writer, INSERTS_PER_WRITER)
        else:
            append(catalog_server, name, writer, INSERTS_PER_WRITER)

    in_parallel(write)
    assert sql(f"SELECT * FROM {name}") == rows(iceberg.load_table(name)) == each_once(INSERTS_PER_WRITER)
    check_line(iceberg.load_table(name), WRITERS * INSERTS_PER_WRITER)
    check_cleaned(sql, catalog_server, name, each_once(INSERTS_PER_WRITER))


@pytest.mark.parametrize(("writers", "count"), [pytest.param(8, 1, marks=pytest.mark.smoke), (32, 3)])
def test_appenders_that_consent(spark, sql, iceberg, catalog_server, namespace, writers, count):
    """Half of the writers are Spark's, half PyIceberg's. All consent by the header, none tries again, and none is refused.

    Their manifests stay fewer than the 100 from which Spark merges them.
    """
    name = f"{namespace}.consented"
    sql(
        f"CREATE TABLE {name} (writer BIGINT, number BIGINT) USING iceberg TBLPROPERTIES "
        "('commit.retry.num-retries' = '0', 'moorage.append-rebase' = 'on')"
    )
    for writer in range(0, writers, 2):
        clients.add_spark_catalog(spark, f"consents{writer}", catalog_server, **CONSENT)

    def write(writer: int) -> None:
        if writer % 2:
            append(catalog_server, name, writer, count, **CONSENT)
        else:
            insert(sql, f"consents{writer}.{name}", writer, count)

    in_parallel(write, writers)
    expected = each_once(count, writers)
    assert sql(f"SELECT * FROM {name}") == expected
    loaded = iceberg.load_table(name)
    assert rows(loaded) == expected
    check_line(loaded, len(expected))
    assert moved(loaded), "nobody was late"
    check_cleaned(sql, catalog_server, name, expected)
