"""Commits of several tables with the Java client, which Spark has no statement for: its classes are called in Spark's JVM."""

import pytest
from py4j.protocol import Py4JJavaError


@pytest.fixture
def tables(sql, namespace):
    """Two tables with a row, and a third whose file has another row for them."""
    names = [f"{namespace}.{name}" for name in ("first", "second", "source")]
    for name in names:
        sql(f"CREATE TABLE {name} (id INT) USING iceberg")
        sql(f"INSERT INTO {name} VALUES ({7 if name.endswith('source') else 1})")
    return names


def test_commit_of_several_tables(sql, java, watched, tables):
    first, second, source = tables
    [file] = java.files(source)
    java.commit(java.append(first, file), java.append(second, file), java.set(source, "taken", "yes"))
    assert sql(f"SELECT * FROM {first}") == sql(f"SELECT * FROM {second}") == [(1,), (7,)]
    assert dict(sql(f"SHOW TBLPROPERTIES {source}"))["taken"] == "yes"
    [request] = watched.posts("/transactions/commit")
    assert (request.names(), request.status) == (["first", "second", "source"], 204)


def test_create_among_changes(sql, iceberg, java, tables, namespace):
    first, _, source = tables
    made = f"{namespace}.made"
    create = java.create(made, like=source, location=iceberg.load_table(source).location() + "_made")
    java.commit(java.append(first, *java.files(source)), create)
    assert sql(f"SELECT * FROM {first}") == [(1,), (7,)]
    sql(f"INSERT INTO {made} VALUES (8)")
    assert sql(f"SELECT * FROM {made}") == [(8,)]
    # Once it is there, the same creation takes its company down with it.
    with pytest.raises(Py4JJavaError, match="CommitFailedException"):
        java.commit(java.set(first, "half", "yes"), create)
    assert "half" not in dict(sql(f"SHOW TBLPROPERTIES {first}"))
    assert sql(f"SELECT * FROM {made}") == [(8,)]


@pytest.mark.parametrize("stale", [0, 1], ids=["first", "second"])
def test_conflict_changes_nothing(sql, java, tables, stale):
    *names, source = tables
    [file] = java.files(source)
    changes = [java.append(name, file) for name in names]
    sql(f"INSERT INTO {names[stale]} VALUES (2)")
    with pytest.raises(Py4JJavaError, match="CommitFailedException"):
        java.commit(*changes)
    found = [sql(f"SELECT * FROM {name}") for name in names]
    assert found[stale] == [(1,), (2,)]
    assert found[1 - stale] == [(1,)]


def test_missing_table_changes_nothing(sql, java, tables):
    first, second, _ = tables
    changes = [java.set(first, "half", "yes"), java.set(second, "half", "yes")]
    sql(f"DROP TABLE {second}")
    with pytest.raises(Py4JJavaError, match="CommitFailedException|NoSuchTableException"):
        java.commit(*changes)
    assert "half" not in dict(sql(f"SHOW TBLPROPERTIES {first}"))
