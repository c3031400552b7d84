"""The program of docs/guide/maintain.md by which PyIceberg compacts, and its two commands."""

import pytest
from harness import guided, server

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]


@pytest.fixture(scope="module")
def moorage():
    with server.Moorage() as started:
        yield started


def test_compaction_of_the_guide(moorage, tmp_path):
    guided.compacts(moorage, tmp_path, "Compact with a program", "compact.py")
