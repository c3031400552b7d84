"""Fixtures of the DuckDB suite."""

import pyarrow as pa
import pytest
from harness.views import version
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField


@pytest.fixture
def table(iceberg, namespace):
    """A table that PyIceberg wrote, with two snapshots: ids 1, 2; 1, 2, 3."""
    made = iceberg.create_table(
        f"{namespace}.events", schema=pa.schema([pa.field("id", pa.int64()), pa.field("place", pa.string())])
    )
    made.append(pa.table({"id": [1, 2], "place": ["oslo", "rome"]}))
    made.append(pa.table({"id": [3], "place": ["oslo"]}))
    return made


@pytest.fixture
def view(iceberg, namespace):
    """A view that PyIceberg made, of one row."""
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    return iceberg.create_view(f"{namespace}.seen", schema, version({"duckdb": "SELECT 1 AS id", "spark": "SELECT 1L AS id"}))
