"""The Java client without an engine: its classes, called in the JVM of a Spark session."""

import uuid

from harness import clients


class Java:
    """A RESTCatalog of the Java client, connected to a server."""

    def __init__(self, spark, server, **more: str):
        """Connects to a server; more are additional catalog properties."""
        self._jvm = spark._jvm
        properties = self._jvm.java.util.HashMap()
        for name, value in {**clients.java_properties(server), **more}.items():
            properties[name] = value
        self.catalog = self._jvm.org.apache.iceberg.rest.RESTCatalog()
        self.catalog.setConf(spark._jsc.hadoopConfiguration())
        self.catalog.initialize("java", properties)

    def load(self, name: str):
        return self.catalog.loadTable(self.identifier(name))

    def identifier(self, name: str):
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.parse(name)

    def files(self, name: str) -> list:
        """The data files that the current snapshot of a table added."""
        table = self.load(name)
        return list(table.currentSnapshot().addedDataFiles(table.io()))

    def append(self, name: str, *files):
        """An uncommitted change of a table that adds files."""
        transaction = self.load(name).newTransaction()
        change = transaction.newFastAppend()
        for file in files:
            change.appendFile(file)
        change.commit()
        return self._commit(name, transaction)

    def insert_if_absent(self, name: str, transaction=None):
        """An uncommitted change that adds a file unless another writer has added one since.

        It is a change of a table, or of a transaction on it. Engines commit an insert-only MERGE in this way.
        The operation of its snapshot is append.
        """
        iceberg = self._jvm.org.apache.iceberg
        loaded = self.load(name)
        path = f"{loaded.location()}/data/{uuid.uuid4()}.parquet"
        file = iceberg.DataFiles.builder(loaded.spec()).withPath(path).withFileSizeInBytes(10).withRecordCount(1).build()
        change = (transaction or loaded).newRowDelta().addRows(file).validateFromSnapshot(loaded.currentSnapshot().snapshotId())
        return change.conflictDetectionFilter(iceberg.expressions.Expressions.alwaysTrue()).validateNoConflictingDataFiles()

    def upsert(self, name: str):
        """The change of insert_if_absent as a request that is sent without checking the table again."""
        transaction = self.load(name).newTransaction()
        self.insert_if_absent(name, transaction).commit()
        return self._commit(name, transaction)

    def set(self, name: str, key: str, value: str):
        """An uncommitted change of a table that sets a property."""
        transaction = self.load(name).newTransaction()
        transaction.updateProperties().set(key, value).commit()
        return self._commit(name, transaction)

    def create(self, name: str, like: str, location: str):
        """The uncommitted creation of a table at a location, with the schema of another table."""
        iceberg = self._jvm.org.apache.iceberg
        schema = self.load(like).schema()
        nothing = self._jvm.java.util.HashMap()
        made = iceberg.TableMetadata.newTableMetadata(schema, iceberg.PartitionSpec.unpartitioned(), location, nothing)
        requirements = iceberg.UpdateRequirements.forCreateTable(made.changes())
        commit = iceberg.catalog.ImmutableTableCommit.builder().identifier(self.identifier(name))
        return commit.addAllRequirements(requirements).addAllUpdates(made.changes()).build()

    def create_view(self, name: str, like: str, **queries: str):
        """Creates a view with a query for each dialect, and the schema of a table."""
        builder = self.catalog.buildView(self.identifier(name)).withSchema(self.load(like).schema())
        for dialect, query in queries.items():
            builder = builder.withQuery(dialect, query)
        return builder.withDefaultNamespace(self.identifier(name).namespace()).create()

    def _commit(self, name: str, transaction):
        create = self._jvm.org.apache.iceberg.catalog.TableCommit.create
        return create(self.identifier(name), transaction.startMetadata(), transaction.currentMetadata())

    def commit(self, *changes) -> None:
        self.catalog.commitTransaction(self._jvm.java.util.ArrayList(changes))

    def close(self) -> None:
        self.catalog.close()
