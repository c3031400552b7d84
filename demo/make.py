#!/usr/bin/env python3
"""Makes the data files of the demo: demo/data/*.parquet, and files.json with their metrics.

    demo/make.py            from the root of the repository, with pyarrow

The files are committed, so this runs only when the demo's tables change. The rows are drawn with a
fixed seed. With the same version of pyarrow the files have the same bytes.

files.json has what an Iceberg manifest needs of each file: rows, bytes, and for each field id the
size, the values, the nulls and the bounds. demo_test.go compares it with the files.
"""

import datetime as dt
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).resolve().parent / "data"
UTC = dt.timezone.utc
YEAR = 2025
VOYAGES = 50_000

# The reserved field ids of position delete files. Source: Iceberg table specification.
DELETE_FILE_PATH, DELETE_POS = 2147483546, 2147483545

PORTS = [  # name, country, latitude, longitude, berths; the last three are deleted in the demo
    ("Antwerp", "BE", 51.26, 4.40, 24), ("Bergen", "NO", 60.39, 5.32, 8), ("Cadiz", "ES", 36.53, -6.29, 9),
    ("Dublin", "IE", 53.35, -6.20, 11), ("Felixstowe", "GB", 51.96, 1.35, 14), ("Gdansk", "PL", 54.40, 18.67, 13),
    ("Genoa", "IT", 44.41, 8.92, 16), ("Hamburg", "DE", 53.54, 9.98, 27), ("Lisbon", "PT", 38.71, -9.13, 12),
    ("Marseille", "FR", 43.31, 5.36, 18), ("Piraeus", "GR", 37.94, 23.63, 20), ("Rotterdam", "NL", 51.95, 4.14, 31),
    ("Valencia", "ES", 39.45, -0.32, 19), ("Riga", "LV", 57.00, 24.10, 7), ("Rostock", "DE", 54.15, 12.10, 6),
    ("Turku", "FI", 60.44, 22.23, 5),
]
SHIPS = [  # name, flag, built, capacity in tons
    ("Albatross", "NL", 2004, 9_200), ("Beluga", "DE", 2011, 31_000), ("Cormorant", "GB", 1998, 7_400),
    ("Dunlin", "NO", 2016, 12_800), ("Eider", "DK", 2009, 18_500), ("Fulmar", "IS", 2002, 6_900),
    ("Gannet", "IE", 2018, 24_300), ("Heron", "FR", 2007, 15_100), ("Ibis", "ES", 2013, 28_700),
    ("Kittiwake", "PT", 2020, 35_400), ("Lapwing", "BE", 1995, 5_200), ("Merlin", "IT", 2015, 21_600),
]
CARGO = ["containers", "grain", "timber", "steel", "cars", "coffee", "ore", "fish"]


def field(number: int, name: str, kind: pa.DataType, required: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not required, metadata={"PARQUET:field_id": str(number)})


PORT_SCHEMA = pa.schema([
    field(1, "name", pa.string(), True), field(2, "country", pa.string()), field(3, "latitude", pa.float64()),
    field(4, "longitude", pa.float64()), field(5, "berths", pa.int32()),
])
SHIP_SCHEMA = pa.schema([
    field(1, "ship_id", pa.int32(), True), field(2, "name", pa.string(), True), field(3, "flag", pa.string()),
    field(4, "built", pa.int32()),
])
LATER_SHIP_SCHEMA = SHIP_SCHEMA.append(field(5, "capacity", pa.int32()))
VOYAGE_SCHEMA = pa.schema([
    field(1, "voyage_id", pa.int64(), True), field(2, "ship_id", pa.int32(), True),
    field(3, "origin", pa.string(), True), field(4, "destination", pa.string(), True),
    field(5, "departed", pa.timestamp("us", tz="UTC"), True), field(6, "arrived", pa.timestamp("us", tz="UTC")),
    field(7, "cargo", pa.string()), field(8, "tons", pa.int32()),
])


def bound(value: object) -> object:
    """A bound in its JSON form: instants are microseconds since 1970."""
    if isinstance(value, dt.datetime):
        return round((value - dt.datetime(1970, 1, 1, tzinfo=UTC)) / dt.timedelta(microseconds=1))
    return value


def metrics(path: Path) -> dict:
    """The facts about a file that a manifest needs."""
    meta = pq.ParquetFile(path).metadata
    assert meta.num_row_groups == 1, path
    group, schema = meta.row_group(0), pq.ParquetFile(path).schema_arrow
    columns = {}
    for i, column in enumerate(schema):
        chunk = group.column(i)
        columns[column.metadata[b"PARQUET:field_id"].decode()] = {
            "type": str(column.type), "bytes": chunk.total_compressed_size, "values": group.num_rows,
            "nulls": chunk.statistics.null_count, "lower": bound(chunk.statistics.min), "upper": bound(chunk.statistics.max),
        }
    return {"name": path.name, "rows": meta.num_rows, "bytes": path.stat().st_size, "columns": columns}


def write(name: str, schema: pa.Schema, rows: list[tuple]) -> dict:
    columns = [pa.array(values, type=f.type) for f, values in zip(schema, zip(*rows))]
    path = DATA / name
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd", compression_level=19,
                   store_schema=False, use_dictionary=[f.name for f in schema if f.name not in ("voyage_id", "departed")],
                   write_page_index=False, data_page_size=1 << 20)
    return metrics(path)


def voyages(random_: random.Random) -> list[list[tuple]]:
    """The voyages of each month of departure."""
    begin = dt.datetime(YEAR, 1, 1, tzinfo=UTC)
    hours = int((dt.datetime(YEAR + 1, 1, 1, tzinfo=UTC) - begin) / dt.timedelta(hours=1))
    months = [[] for _ in range(12)]
    names = [port[0] for port in PORTS]
    departures = sorted(random_.randrange(hours) for _ in range(VOYAGES))
    for number, hour in enumerate(departures, 1):
        ship = random_.randrange(len(SHIPS))
        origin, destination = random_.sample(names, 2)
        departed = begin + dt.timedelta(hours=hour)
        arrived = departed + dt.timedelta(hours=12 * random_.randint(1, 8)) if random_.random() < 0.998 else None
        tons = round(SHIPS[ship][3] * random_.randint(6, 10) / 10)
        months[departed.month - 1].append(
            (number, ship + 1, origin, destination, departed, arrived, random_.choice(CARGO), tons))
    return months


def main() -> None:
    random_ = random.Random(20250101)
    DATA.mkdir(exist_ok=True)
    for old in DATA.glob("*.parquet"):
        old.unlink()
    ships = [(number, *ship) for number, ship in enumerate(SHIPS, 1)]
    files = [
        write("ships-1.parquet", SHIP_SCHEMA, [ship[:4] for ship in ships[:5]]),
        write("ships-2.parquet", SHIP_SCHEMA, [ship[:4] for ship in ships[5:9]]),
        write("ships-3.parquet", LATER_SHIP_SCHEMA, ships[9:]),
        write("ports.parquet", PORT_SCHEMA, PORTS),
    ]
    for month, rows in enumerate(voyages(random_), 1):
        files.append(write(f"voyages-{YEAR}-{month:02}.parquet", VOYAGE_SCHEMA, rows))
    (DATA / "files.json").write_text(json.dumps(files, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(files)} files, {sum(f['bytes'] for f in files):,} bytes")


if __name__ == "__main__":
    main()
