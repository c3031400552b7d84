"""The program of docs/guide/maintain.md by which Spark compacts, and its two commands."""

import pytest
from harness import guided, server

pytestmark = pytest.mark.moorage_only


@pytest.fixture(scope="module")
def moorage():
    with server.Moorage(port=server.free_port()) as started:
        yield started


def test_compaction_of_the_guide(moorage, jars, tmp_path):
    settings = {
        "spark.master": "local[2]",
        "spark.jars": ",".join(str(jar) for jar in jars("spark")),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(tmp_path),
    }
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    guided.compacts(
        moorage, tmp_path, "Compact with Spark", "compact_spark.py", SPARK_CONF_DIR=str(tmp_path), SPARK_LOCAL_IP="127.0.0.1"
    )
