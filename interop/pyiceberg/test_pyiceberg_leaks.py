"""All that PyIceberg writes, searched for what it must not have been told: `harness/leaks.py` says what that is."""

import pytest
from harness import leaks

pytestmark = pytest.mark.moorage_only


@pytest.mark.smoke
def test_output(secured_lake):
    world = leaks.make_world(secured_lake, "pyiceberg")
    leaks.check(world, leaks.run("pyiceberg", world))
