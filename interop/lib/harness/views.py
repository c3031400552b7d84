"""Views: the arguments with which PyIceberg creates one, and common checks for Spark and Trino."""

from collections.abc import Callable

import pytest
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from harness.writers import WRITERS


def version(queries: dict[str, str], **more) -> ViewVersion:
    """A version with a query for each dialect.

    more are additional fields. Names in the queries are in the namespace ns.
    """
    representations = [
        ViewRepresentation(SQLViewRepresentation(type="sql", sql=query, dialect=dialect)) for dialect, query in queries.items()
    ]
    return ViewVersion(schema_id=0, representations=representations, **({"default_namespace": ("ns",)} | more))


def replace(sql: Callable[[str], object], view: str, writer: int, count: int) -> None:
    """Replaces a view count times, with a view of the row (writer, 1), then of (writer, 2) and so on."""
    for number in range(1, count + 1):
        sql(f"CREATE OR REPLACE VIEW {view} AS SELECT {writer} AS writer, {number} AS number")


def check_replaced(view, count: int, row: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
    """Checks a PyIceberg view that had the row (0, 0), after all writers replaced it at once.

    It must have all versions. Each must have been current once, the versions of one writer in order, and the
    last one must be current. Returns the row of the last one. row extracts the row from a query as stored by
    the engine.
    """
    made = {each.version_id: row(each.representations[0].root.sql) for each in view.versions}
    assert sorted(made.values()) == [(0, 0), *sorted((w, n) for w in range(WRITERS) for n in range(1, count + 1))]
    logged = [entry.version_id for entry in view.history()]
    assert sorted(logged) == sorted(made), "each version was the view once"
    assert view.current_version().version_id == logged[-1]
    for writer in range(WRITERS):
        order = [made[each] for each in logged if made[each][0] == writer]
        assert order == sorted(order), f"writer {writer}"
    return made[logged[-1]]


def check_second_version(before, after) -> None:
    """Checks a PyIceberg view before and after its first replacement: it must be the same view with both versions.

    Its location may change: Trino moves it.
    """
    assert after.metadata.view_uuid == before.metadata.view_uuid, "replaced by another view"
    assert [each.version_id for each in after.versions] == [1, 2]
    assert after.version(1) == before.current_version()


def check_view_of_a_view(sql: Callable[[str], list[tuple]], namespace: str, table: str, absent: str, recursive: str) -> None:
    """Checks that a view on another view follows its changes, cannot be created before it, and cannot be read by it.

    The table has the rows (1, 'oslo') and (2, 'rome'). absent and recursive match the engine's errors in the
    two refused cases.
    """
    inner, outer = f"{namespace}.inner_view", f"{namespace}.outer_view"
    with pytest.raises(Exception, match=absent):
        sql(f"CREATE VIEW {outer} AS SELECT * FROM {inner}")
    sql(f"CREATE VIEW {inner} AS SELECT id FROM {table}")
    sql(f"CREATE VIEW {outer} AS SELECT max(id) + 1 AS next FROM {inner}")
    assert sql(f"SELECT * FROM {outer}") == [(3,)]
    with pytest.raises(Exception, match=recursive):
        sql(f"CREATE OR REPLACE VIEW {inner} AS SELECT next AS id FROM {outer}")
    sql(f"CREATE OR REPLACE VIEW {inner} AS SELECT 10 * id AS id FROM {table}")
    assert sql(f"SELECT * FROM {outer}") == [(21,)]
    assert sql(f"SELECT o.next, e.place FROM {outer} o JOIN {table} e ON o.next > e.id") == [(21, "oslo"), (21, "rome")]
