"""The demo, read by Trino with the properties and the query that `moorage connect` prints."""

import pytest
from harness.demo import Demo

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]

CATALOG = "moorage"  # that the printed query names


def test_printed_lines(engine, sql):
    engine.execute(f"DROP CATALOG IF EXISTS {CATALOG}")
    with Demo() as demo:
        lines = demo.connect("trino", "harbour.ships").splitlines()
        engine.add(dict(line.split("=", 1) for line in lines if not line.startswith("#")), CATALOG)
        [query] = [line.removeprefix("# ").removesuffix(";") for line in lines if line.startswith("#")]
        assert len(sql(query)) == 10
        assert sql(f"SELECT count(*) FROM {CATALOG}.harbour.voyages") == [(50_000,)]
        assert sql(f"SELECT count(*), sum(capacity) FROM {CATALOG}.harbour.ships") == [(12, 62_200)]
        assert sql(f"SELECT count(*) FROM {CATALOG}.harbour.ships FOR VERSION AS OF 'christening'") == [(5,)]
        assert sql(f"SELECT count(*), count_if(name = 'Riga') FROM {CATALOG}.harbour.ports") == [(13, 0)]
        assert sql(f"SELECT sum(departures) FROM {CATALOG}.harbour.busiest") == [(50_000,)]
        engine.execute(f"DROP CATALOG {CATALOG}")
