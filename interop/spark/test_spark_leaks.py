"""All that Spark writes, searched for what it must not have been told: `harness/leaks.py` says what that is."""

import pytest
from harness import leaks

pytestmark = pytest.mark.moorage_only


def test_output(secured_lake):
    world = leaks.make_world(secured_lake, "spark")
    leaks.check(world, leaks.run("spark", world))
