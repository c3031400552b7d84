"""A job of Spark's that outlives its credentials, which are good for seconds here."""

import time

import pytest
from botocore.exceptions import ClientError
from harness import clients, s3
from harness.delegated import ASKED, VENDED, Delegated, keys_told
from harness.impatient import Impatient
from harness.proxy import Proxy

pytestmark = pytest.mark.moorage_only

# Java's clients renew a credential when a minute is left: six seconds after it was made.
TOLD_SECONDS = 66
LIVES_SECONDS = 15


@pytest.fixture(scope="module")
def impatient():
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS, LIVES_SECONDS) as before, Delegated(before, VENDED) as running:
        yield before, running


def test_job_outlives_its_credentials(spark, impatient, vended_server):
    """One file system of Java's, as a task has it, writes and reads for longer than two credentials live."""
    storage, running = impatient
    with Proxy(running) as watched:
        clients.add_spark_catalog(spark, "renewed", watched, **{ASKED: VENDED})
        spark.sql("CREATE NAMESPACE renewed.job")
        spark.sql("CREATE TABLE renewed.job.events (id BIGINT) USING iceberg")
        spark.sql("INSERT INTO renewed.job.events VALUES (1)")
        table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "renewed.job.events")
        first = keys_told(watched, "events")
        began = time.monotonic()
        count = 0
        while time.monotonic() - began < 2.5 * LIVES_SECONDS:
            out = table.io().newOutputFile(f"{table.location()}/data/{count}.bin").createOrOverwrite()
            out.write(count)
            out.close()
            assert table.io().newInputFile(f"{table.location()}/data/{count}.bin").getLength() == 1
            count += 1
            time.sleep(1)
        renewed = [exchange for exchange in watched.seen if exchange.path.endswith("/credentials")]
        assert len(renewed) >= 3
        assert {exchange.status for exchange in renewed} == {200}
        assert storage.refused == [], "a request with a credential that had ended"
        # The one that the job began with is refused by now.
        old = storage.client(first["s3.access-key-id"], first["s3.secret-access-key"], first["s3.session-token"])
        with pytest.raises(ClientError, match="ExpiredToken"):
            old.list_objects_v2(Bucket=s3.BUCKET, Prefix="warehouse/")
        spark.sql("INSERT INTO renewed.job.events VALUES (2)")
        assert spark.sql("SELECT count(*) FROM renewed.job.events").collect()[0][0] == 2
