"""The demo, read by PyIceberg with the lines that `moorage connect` prints."""

import pytest
from harness.demo import Demo

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]


def test_printed_lines(capsys):
    with Demo() as demo:
        scope = {}
        exec(demo.connect("pyiceberg", "harbour.ships"), scope)
        assert "Albatross" in capsys.readouterr().out
        catalog = scope["catalog"]
        assert catalog.load_table("harbour.voyages").scan().count() == 50_000
        ships = catalog.load_table("harbour.ships")
        assert [ships.scan(snapshot_id=s.snapshot_id).to_arrow().num_rows for s in ships.snapshots()] == [5, 9, 12]
        assert ships.refs()["christening"].snapshot_id == ships.snapshots()[0].snapshot_id
        ports = catalog.load_table("harbour.ports").scan().to_arrow()
        assert ports.num_rows == 13
        assert "Riga" not in ports["name"].to_pylist()
        month = catalog.load_table("harbour.voyages").scan(row_filter="departed < '2025-02-01T00:00:00+00:00'")
        assert len(list(month.plan_files())) == 1
        assert {view[-1] for view in catalog.list_views("harbour")} == {"arrivals", "busiest"}
