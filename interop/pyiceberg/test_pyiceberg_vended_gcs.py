"""PyIceberg without a key of Google Cloud Storage: the catalog gives it tokens for one table at a time."""

import pytest
from harness import clients, google
from harness.compare import eventually
from harness.delegated import keys_told, lives_by_pyiceberg
from harness.proxy import Proxy

pytestmark = pytest.mark.moorage_only


@pytest.fixture
def vended():
    with google.Cloud() as cloud, google.InGoogle(cloud) as running, Proxy(running) as watched:
        yield watched


def test_life_of_a_table(vended):
    lake = clients.pyiceberg_catalog(vended)
    own, sibling = lives_by_pyiceberg(lake)
    google.check_reach(vended.storage, keys_told(vended, "events")["gcs.oauth2.token"], own.location(), sibling.location())
    [foreign] = [task.file.file_path for task in sibling.scan().plan_files()]
    with pytest.raises(OSError, match="PERMISSION_DENIED|403|Forbidden|access"):
        own.io.new_input(foreign).open().read()
    lake.purge_table("py_vended.events")
    assert eventually(lambda: vended.storage.list(own.location()) == [])
    lake.drop_table("py_vended.events_two")
    lake.drop_namespace("py_vended")
