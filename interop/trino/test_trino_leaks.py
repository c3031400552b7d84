"""All that Trino writes, searched for what it must not have been told: `harness/leaks.py` says what that is."""

import pytest
from harness import delegated, leaks, secured
from harness.trino import told
from trino.exceptions import TrinoQueryError

pytestmark = pytest.mark.moorage_only


def test_output(engine, secured_lake):
    """Trino's answers, and its log since the test began: before, others gave it keys of their own."""
    world = leaks.make_world(secured_lake, "trino")
    began = engine.log.stat().st_size
    properties = delegated.trino_catalog(secured_lake) | secured.trino_credentials(secured_lake, world.key)
    catalog = engine.add(properties)
    answers = []
    for statement, succeeds in leaks.statements(catalog, world):
        try:
            answers.append(repr(engine.execute(statement)))
            assert succeeds, statement
        except TrinoQueryError as refused:
            assert not succeeds, told(refused)
            answers.append(told(refused))
    with engine.log.open(errors="replace") as log:
        log.seek(began)
        leaks.check(world, {"Trino's answers": "\n".join(answers), "Trino's log": log.read()})
