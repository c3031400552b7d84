"""Writers that do not try again, on a table that asks the server to put late appends on top of the head."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from harness import clients
from harness.cleaning import clean
from harness.compare import rows
from harness.history import check_line, moved, rows_added
from harness.writers import append, append_row
from pyiceberg.exceptions import CommitFailedException

pytestmark = pytest.mark.moorage_only
SCHEMA = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])
REBASED = {"moorage.append-rebase": "on-all", "commit.retry.num-retries": "0"}
# A client that merges makes a new manifest of old ones from this many on.
MERGING = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "4"}


def work_at_once(server, name: str, writers: int, count: int) -> None:
    """So many writers at once add the rows of each, every row by a commit of its own; none tries again."""
    with ThreadPoolExecutor(writers) as pool:
        for outcome in [pool.submit(append, server, name, writer, count) for writer in range(writers)]:
            outcome.result()


def check_rows(table, writers: int, count: int) -> None:
    """Each row is there once, and each commit has its snapshot, in one line, with totals that are right."""
    assert rows(table) == [(writer, number) for writer in range(writers) for number in range(count)]
    check_line(table, writers * count)
    assert rows_added(table) == writers * count
    assert table.current_snapshot().summary["total-records"] == str(writers * count)
    assert moved(table), "nobody was late"


@pytest.mark.smoke
def test_late_append_is_put_on_top(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, properties=REBASED)
    stale = iceberg.load_table(f"{namespace}.events")
    append_row(table, 1, 1)
    append_row(stale, 2, 2)
    found = iceberg.load_table(f"{namespace}.events")
    assert rows(found) == rows(stale) == [(1, 1), (2, 2)]
    assert moved(found) == 1


@pytest.mark.smoke
def test_each_writer_consents_by_header(catalog_server, iceberg, namespace):
    """A table with "on" moves the appends of clients that ask for it, and refuses the others as ever."""
    name = f"{namespace}.events"
    iceberg.create_table(name, schema=SCHEMA, properties={**REBASED, "moorage.append-rebase": "on"})
    asks = clients.pyiceberg_catalog(catalog_server, **{"header.X-Moorage-Append-Rebase": "on"})
    late, silent = asks.load_table(name), iceberg.load_table(name)
    append_row(iceberg.load_table(name), 1, 1)
    with pytest.raises(CommitFailedException):
        append_row(silent, 2, 2)
    append_row(late, 3, 3)
    assert rows(iceberg.load_table(name)) == [(1, 1), (3, 3)]
    assert moved(iceberg.load_table(name)) == 1


@pytest.mark.parametrize("merging", [False, True], ids=["appends", "merges"])
@pytest.mark.parametrize(("writers", "count"), [(4, 8), (32, 2)])
def test_writers_who_do_not_try_again(catalog_server, iceberg, namespace, writers, count, merging):
    """The client expires afterwards, and the server removes orphans, because the client cannot."""
    name = f"{namespace}.events"
    iceberg.create_table(name, schema=SCHEMA, properties=REBASED)
    if merging:
        with iceberg.load_table(name).transaction() as change:
            change.set_properties(MERGING)
        # Two who merge the same manifests at the same moment cannot both be moved: the client tries again.
        with iceberg.load_table(name).transaction() as change:
            change.set_properties({"commit.retry.num-retries": "50"})
    work_at_once(catalog_server, name, writers, count)
    check_rows(iceberg.load_table(name), writers, count)
    clean(catalog_server, iceberg.load_table(name))
    table = iceberg.load_table(name)
    check_line(table, 1)
    written = [(writer, number) for writer in range(writers) for number in range(count)]
    assert rows(table) == written
    append_row(table, 99, 99)
    assert rows(iceberg.load_table(name)) == [*written, (99, 99)]


def test_off_wins(catalog_server, iceberg, namespace):
    name = f"{namespace}.events"
    table = iceberg.create_table(name, schema=SCHEMA, properties=REBASED)
    with table.transaction() as change:
        change.set_properties({"moorage.append-rebase": "off"})
    stale = clients.pyiceberg_catalog(catalog_server).load_table(name)
    append_row(iceberg.load_table(name), 1, 1)
    with pytest.raises(CommitFailedException):
        append_row(stale, 2, 2)
    assert rows(iceberg.load_table(name)) == [(1, 1)]
