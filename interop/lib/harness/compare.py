"""Comparison of rows, and waiting for what the server does in its own time."""

import time
from collections.abc import Callable


def rows(table, *columns: str, **scan) -> list[tuple]:
    """The rows of a PyIceberg table, sorted; of these columns, or of all in their order."""
    if columns:
        scan["selected_fields"] = columns
    arrow = table.scan(**scan).to_arrow()
    return ordered(zip(*(arrow.column(name).to_pylist() for name in columns or arrow.column_names), strict=True))


def ordered(found) -> list[tuple]:
    """Rows as tuples in an order that does not depend on how they were read; None sorts first."""
    return sorted((tuple(row) for row in found), key=lambda row: [(value is not None, value) for value in row])


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether condition becomes true in time. For background work that has no signal to a client."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
