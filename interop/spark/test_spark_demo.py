"""The demo, read by Spark with the options that `moorage connect` prints."""

import shlex

import pytest
from harness.demo import Demo

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]


def options(line: str, name: str) -> list[str]:
    """The values of an option of a command."""
    words = shlex.split(line.replace("\\\n", " "))
    return [value for word, value in zip(words, words[1:]) if word == name]


def test_printed_lines(spark, sql):
    with Demo() as demo:
        line = demo.connect("spark", "harbour.ships")
        for setting in options(line, "--conf"):
            name, value = setting.split("=", 1)
            if name == "spark.sql.extensions":  # of the whole session, which has it
                assert spark.conf.get(name) == value
            else:
                spark.conf.set(name, value)
        [query] = options(line, "-e")
        assert len(sql(query)) == 10
        assert sql("SELECT count(*) FROM moorage.harbour.voyages") == [(50_000,)]
        assert sql("SELECT count(*), sum(capacity) FROM moorage.harbour.ships") == [(12, 62_200)]
        assert sql("SELECT count(*) FROM moorage.harbour.ships VERSION AS OF 'christening'") == [(5,)]
        assert sql("SELECT count(*), sum(CASE WHEN name = 'Riga' THEN 1 ELSE 0 END) FROM moorage.harbour.ports") == [(13, 0)]
        assert sql("SELECT sum(departures) FROM moorage.harbour.busiest") == [(50_000,)]
