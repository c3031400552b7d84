"""The first rows of a table from the management API, in a form that can be compared with PyIceberg's rows."""

import json
import math
import struct
import urllib.error
import urllib.parse
import urllib.request

from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    ListType,
    MapType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)


class NotShown(Exception):
    """The server did not return the rows, for the reason in the message."""


def answer(server, table: str, **asked) -> dict:
    """The response to GET /management/v1/rows for the table namespace.name."""
    namespace, _, name = table.rpartition(".")
    query = {"warehouse": server.warehouse, "namespace": namespace.replace(".", "\x1f"), "table": name, "limit": 200, **asked}
    url = f"{server.uri}/management/v1/rows?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as opened:
            return json.load(opened)
    except urllib.error.HTTPError as failure:
        error = json.load(failure)["error"]
        if error["type"] == "RowsNotShownException":
            raise NotShown(error["message"]) from failure
        raise AssertionError(f"{failure.code}: {error}") from failure


def form(value, kind):
    """A PyIceberg value in the form of the API."""
    if value is None:
        return None
    if isinstance(kind, FloatType | DoubleType):
        if isinstance(value, str):
            return value
        if math.isnan(value) or math.isinf(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return struct.unpack("f", struct.pack("f", value))[0] if isinstance(kind, FloatType) else float(value)
    if isinstance(kind, DecimalType):
        return f"{value:.{kind.scale}f}"
    if isinstance(kind, TimeType | TimestampType | TimestamptzType):
        return value.isoformat(timespec="microseconds")
    if isinstance(kind, DateType):
        return value.isoformat()
    if isinstance(kind, UUIDType):
        text = value.hex() if isinstance(value, bytes) else str(value).replace("-", "")
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    if isinstance(kind, BinaryType | FixedType):
        return value.hex()
    if isinstance(kind, StructType):
        return {field.name: form(value[field.name], field.field_type) for field in kind.fields}
    if isinstance(kind, ListType):
        return [form(item, kind.element_type) for item in value]
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, dict) else value
        keys, values = zip(*pairs, strict=True) if pairs else ((), ())
        return {"keys": [form(k, kind.key_type) for k in keys], "values": [form(v, kind.value_type) for v in values]}
    return value


def rounded(value, kind):
    """A value of the API, with each float rounded to its type's precision."""
    if value is None:
        return None
    if isinstance(kind, FloatType):
        return form(value, kind)
    if isinstance(kind, StructType):
        return {field.name: rounded(value[field.name], field.field_type) for field in kind.fields}
    if isinstance(kind, ListType):
        return [rounded(item, kind.element_type) for item in value]
    if isinstance(kind, MapType):
        return {"keys": [rounded(k, kind.key_type) for k in value["keys"]], "values": [rounded(v, kind.value_type) for v in value["values"]]}
    return value


def ordered(rows: list) -> list:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def assert_as_pyiceberg(server, table, name: str, **asked) -> int:
    """Asserts that the returned rows are all rows of a PyIceberg table, and returns their number."""
    scan = table.scan(snapshot_id=asked["snapshot"]) if "snapshot" in asked else table.scan()
    return assert_shown(server, name, scan.projection(), scan.to_arrow(), **asked)


def assert_shown(server, name: str, schema, arrow, **asked) -> int:
    """Asserts that the shown rows of a table with a schema of PyIceberg are those of an Arrow table, and returns how many there are."""
    shown = answer(server, name, **asked)
    assert [column["name"] for column in shown["columns"]] == [field.name for field in schema.fields]
    assert shown["complete"], shown.get("stopped")
    kinds = [field.field_type for field in schema.fields]
    columns = [arrow.column(field.name).to_pylist() for field in schema.fields]
    expected = [[form(column[i], kind) for column, kind in zip(columns, kinds, strict=True)] for i in range(arrow.num_rows)]
    found = [[rounded(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in shown["rows"]]
    assert ordered(found) == ordered(expected)
    return len(found)
