"""What `moorage serve` prints for a PyIceberg user."""

import re
import textwrap

import pytest

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]


def test_printed_lines(catalog_server):
    """The lines for PyIceberg that the server prints when it starts."""
    found = re.search(r"^PyIceberg\b.*\n((?:  .*\n)+)", catalog_server.log.read_text(), re.M)
    scope = {}
    exec(textwrap.dedent(found.group(1)), scope)
    assert isinstance(scope["catalog"].list_namespaces(), list)
