"""A job of PyIceberg's that outlives its credentials, which a proxy before MinIO ends when it is told to."""

import pyarrow as pa
import pytest
from harness import clients, s3
from harness.compare import rows
from harness.delegated import VENDED, Delegated
from harness.impatient import Impatient

pytestmark = pytest.mark.moorage_only

TOLD_SECONDS = 66
ROWS = pa.table({"id": pa.array([1], pa.int64())})

# More than a part of an upload: PyArrow has them of 10 MB, and S3Fs of 50.
FIRST_BYTES, REST_BYTES = 55 << 20, 5 << 20

# What each of the two says. The answer to a HEAD request has no word for it.
EXPIRED = "ExpiredToken|token has expired|HTTP status 400|Bad Request"


@pytest.fixture(scope="module")
def world():
    with s3.MinIO() as files, Impatient(files, TOLD_SECONDS) as storage, Delegated(storage, VENDED) as running:
        yield storage, running


@pytest.fixture(params=["pyarrow.PyArrowFileIO", "fsspec.FsspecFileIO"])
def lake(request, world):
    return clients.pyiceberg_catalog(world[1], **{"py-io-impl": f"pyiceberg.io.{request.param}"})


@pytest.fixture
def table(lake, numbers):
    name = f"renewed{next(numbers)}"
    lake.create_namespace(name)
    return lake.create_table(f"{name}.events", schema=ROWS.schema)


def test_job_outlives_its_credentials(world, table):
    """A table keeps the credential that it was loaded with, and gets another one when it is refreshed."""
    storage, _ = world
    table.append(ROWS)
    storage.end()
    with pytest.raises(Exception, match=EXPIRED):
        table.append(ROWS)
    with pytest.raises(Exception, match=EXPIRED):
        rows(table)
    table.refresh()
    assert rows(table) == [(1,)], "what was refused is not there"
    table.append(ROWS)
    assert rows(table) == [(1,), (1,)]


def test_loaded_again(world, lake, table):
    """So does one that is loaded for each piece of work, without an error in between."""
    storage, _ = world
    for number in range(1, 4):
        lake.load_table(table.name()).append(ROWS)
        storage.end()
        assert len(rows(lake.load_table(table.name()))) == number


# S3Fs tries to end the file once more when nobody has it any more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_file_outlives_its_credential(world, table):
    """A file belongs to the credential that it was opened with, also in the middle: it cannot be written to its end."""
    storage, _ = world
    location = f"{table.location()}/data/long.bin"
    file = table.io.new_output(location).create()
    file.write(bytes(FIRST_BYTES))
    storage.end()
    table.refresh()
    with pytest.raises(Exception, match=EXPIRED):
        file.write(bytes(REST_BYTES))
        file.close()
    assert not table.io.new_input(location).exists(), "half of a file"
    with table.io.new_output(location).create() as again:
        again.write(bytes(FIRST_BYTES + REST_BYTES))
    assert len(table.io.new_input(location)) == FIRST_BYTES + REST_BYTES
