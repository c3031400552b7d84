"""Tables that grow by chance: types, and values of them in the form of Arrow."""

import datetime
import decimal
import math
import random
import uuid

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

EPOCH = datetime.datetime(1970, 1, 1)


class Drawn:
    """Types and values that a seed decides, of every primitive type that PyIceberg writes to Parquet."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.id = 1

    def next_id(self) -> int:
        self.id += 1
        return self.id

    def primitive(self):
        precision = self.random.randint(1, 38)
        return self.random.choice(
            [
                BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), DateType(), TimeType(), TimestampType(),
                TimestamptzType(), StringType(), BinaryType(), FixedType(self.random.randint(1, 20)),
                DecimalType(precision, self.random.randint(0, precision)),
            ]
        )  # fmt: skip

    def kind(self, depth: int = 0):
        drawn = self.random.random()
        if depth == 0 and drawn < 0.05:
            return UUIDType()  # Arrow has no lists and structs of them
        if depth == 3 or drawn < 0.7:
            return self.primitive()
        if drawn < 0.8:
            return StructType(*self.fields(self.random.randint(1, 3), depth + 1))
        if drawn < 0.9:
            return ListType(self.next_id(), self.kind(depth + 1), element_required=self.inner_required())
        key, value = self.next_id(), self.next_id()
        keys = self.random.choice([StringType(), LongType(), DateType()])
        return MapType(key, keys, value, self.kind(depth + 1), value_required=self.inner_required())

    def inner_required(self) -> bool:
        """Whether the next list or map has no nulls."""
        return self.random.random() < 0.3

    def fields(self, count: int, depth: int = 0) -> list[NestedField]:
        return [
            NestedField(self.next_id(), f"c{self.id}", self.kind(depth), required=self.random.random() < 0.2) for _ in range(count)
        ]

    def value(self, kind, required: bool):
        draw = self.random
        if not required and draw.random() < 0.2:
            return None
        match kind:
            case BooleanType():
                return draw.random() < 0.5
            case IntegerType():
                return draw.choice([-(2**31), 2**31 - 1, draw.randint(-9, 9)])
            case LongType():
                return draw.choice([-(2**63), 2**63 - 1, draw.randint(-9, 9)])
            case FloatType() | DoubleType():
                return draw.choice([math.nan, math.inf, -math.inf, 0.1, -0.0, draw.uniform(-1e6, 1e6)])
            case DecimalType():
                digits = draw.randint(1, kind.precision)
                unscaled = draw.choice([-1, 1]) * draw.randint(0, 10**digits - 1)
                with decimal.localcontext(prec=60):
                    return decimal.Decimal(unscaled).scaleb(-kind.scale)
            case DateType():
                return datetime.date(draw.randint(1, 9999), draw.randint(1, 12), draw.randint(1, 28))
            case TimeType():
                return datetime.time(draw.randint(0, 23), draw.randint(0, 59), draw.randint(0, 59), draw.randint(0, 999999))
            case TimestampType() | TimestamptzType():
                moment = EPOCH + datetime.timedelta(days=draw.randint(-300000, 300000), microseconds=draw.randint(0, 10**11))
                return moment.replace(tzinfo=datetime.UTC) if isinstance(kind, TimestamptzType) else moment
            case StringType():
                return draw.choice(["", "ü\n\"\\\u2028", "same", "x" * draw.randint(0, 300), "💧"])
            case UUIDType():
                return uuid.UUID(int=draw.getrandbits(128)).bytes
            case FixedType():
                return draw.randbytes(len(kind))
            case BinaryType():
                return draw.randbytes(draw.randint(0, 30))
            case StructType():
                return {field.name: self.value(field.field_type, field.required) for field in kind.fields}
            case ListType():
                return [self.value(kind.element_type, kind.element_required) for _ in range(draw.randint(0, 4))]
            case MapType():
                keys = {self.value(kind.key_type, True) for _ in range(draw.randint(0, 3))}
                return [(key, self.value(kind.value_type, kind.value_required)) for key in keys]
        raise AssertionError(kind)

    def rows(self, schema: Schema, count: int) -> pa.Table:
        columns = {field.name: [self.value(field.field_type, field.required) for _ in range(count)] for field in schema.fields}
        arrow = schema.as_arrow()
        return pa.table([pa.array(columns[field.name], field.type) for field in arrow], schema=arrow)
