"""Comparison of rows, and waiting for the server's background work."""

import time
from collections.abc import Callable


def rows(table, *columns: str, **scan) -> list[tuple]:
    """The sorted rows of a PyIceberg table, with the given columns or with all in schema order."""
    if columns:
        scan["selected_fields"] = columns
    arrow = table.scan(**scan).to_arrow()
    return ordered(zip(*(arrow.column(name).to_pylist() for name in columns or arrow.column_names), strict=True))


def ordered(found) -> list[tuple]:
    """The rows as sorted tuples, independent of the order in which they were read; None sorts first."""
    return sorted((tuple(row) for row in found), key=lambda row: [(value is not None, value) for value in row])


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether condition becomes true in time. It is for background work that clients can only poll."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
