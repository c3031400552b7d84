"""Views: what PyIceberg wants to know of one to be made, and what Spark and Trino are to do with one alike."""

from collections.abc import Callable

import pytest
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from harness.writers import WRITERS


def version(queries: dict[str, str], **more) -> ViewVersion:
    """A version with a query for each dialect. More are further fields; names in the queries are those of the namespace ns."""
    representations = [
        ViewRepresentation(SQLViewRepresentation(type="sql", sql=query, dialect=dialect)) for dialect, query in queries.items()
    ]
    return ViewVersion(schema_id=0, representations=representations, **({"default_namespace": ("ns",)} | more))


def replace(sql: Callable[[str], object], view: str, writer: int, count: int) -> None:
    """Replaces a view count times, by one of the row (writer, 1), (writer, 2) and so on."""
    for number in range(1, count + 1):
        sql(f"CREATE OR REPLACE VIEW {view} AS SELECT {writer} AS writer, {number} AS number")


def check_replaced(view, count: int, row: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
    """What a PyIceberg view is to be that had the row (0, 0), and that all writers replaced so at once.

    It has all versions, each was the view once, those of one writer came in its order, and the last one is the view.
    Returns the row of that one. row is to tell the row from a query as the engine keeps it.
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
    """What a PyIceberg view is to be after it was replaced for the first time, given what it was: the same view with both versions.

    It need not be where it was: Trino moves it.
    """
    assert after.metadata.view_uuid == before.metadata.view_uuid, "replaced by another view"
    assert [each.version_id for each in after.versions] == [1, 2]
    assert after.version(1) == before.current_version()


def check_view_of_a_view(sql: Callable[[str], list[tuple]], namespace: str, table: str, absent: str, recursive: str) -> None:
    """A view that reads another one follows what that one becomes, and cannot be made before it or be read by it.

    The table has the rows (1, 'oslo') and (2, 'rome'); absent and recursive are the engine's words for what is refused.
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
