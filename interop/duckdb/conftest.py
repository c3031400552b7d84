"""Fixtures of the DuckDB suite."""

import pyarrow as pa
import pytest
from harness.compare import ordered


@pytest.fixture
def query(duck):
    """Runs one statement in DuckDB and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(duck.execute(statement).fetchall())

    return run


@pytest.fixture
def table(iceberg, namespace):
    """A table that PyIceberg wrote, with two snapshots: ids 1, 2; 1, 2, 3."""
    made = iceberg.create_table(
        f"{namespace}.events", schema=pa.schema([pa.field("id", pa.int64()), pa.field("place", pa.string())])
    )
    made.append(pa.table({"id": [1, 2], "place": ["oslo", "rome"]}))
    made.append(pa.table({"id": [3], "place": ["oslo"]}))
    return made
