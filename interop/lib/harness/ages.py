"""Random table histories in Spark, for tests of snapshot expiry and orphan removal."""

import random
import uuid

from harness.compare import ordered

# The changes of a history, and their relative frequencies.
WEIGHTS = {
    "append": 6,
    "append to a branch": 3,
    "overwrite": 1,
    "delete": 3,
    "update": 3,
    "merge": 2,
    "compact": 2,
    "rewrite deletes": 1,
    "rewrite manifests": 2,
    "tag": 2,
    "branch": 2,
    "drop a ref": 1,
    "limit a ref": 1,
    "roll back": 2,
    "stage": 2,
    "publish": 1,
    "cherry-pick": 1,
    "statistics": 2,
    "add files twice": 1,
    "add again": 2,
    "shared vectors": 1,
}
# Changes that require a later format version than 1.
ONLY_LATER = {"rewrite deletes": 2, "shared vectors": 3}
ALWAYS_MS, NEVER_MS = 1, 10 * 365 * 24 * 3600 * 1000


class History:
    """One table of a Spark catalog, changed at random.

    table is its name in the catalog. folder is a folder outside of all tables, for files to add to the table.
    """

    def __init__(self, spark, catalog: str, table: str, folder, seed: int, version: int):
        self.chance = random.Random(seed)
        self.table, self.version, self.folder = table, version, folder / table
        self.done: list[str] = []
        self.shares = 0  # number of times that vectors shared a file
        self._spark, self._catalog = spark, catalog
        self._name = f"{catalog}.{table}"
        self._rows = 0
        self._staged: list[str] = []
        mode = "copy-on-write" if version == 1 or self.chance.random() < 0.25 else "merge-on-read"
        properties = {
            "format-version": version,
            "write.delete.mode": mode,
            "write.update.mode": mode,
            "write.merge.mode": mode,
            "write.wap.enabled": "true",
            "commit.manifest.min-count-to-merge": self.chance.choice([2, 3, 100]),
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        parts = self.chance.choice(["", "PARTITIONED BY (place)"])
        self.partitioned = bool(parts)
        self.sql(f"CREATE TABLE {self._name} (id BIGINT, place STRING, n BIGINT) USING iceberg {parts} TBLPROPERTIES ({listed})")
        self.do("append")

    def sql(self, statement: str) -> list[tuple]:
        return [tuple(row) for row in self._spark.sql(statement).collect()]

    def call(self, procedure: str, *more: str) -> list[tuple]:
        words = ", ".join([f"table => '{self.table}'", *more])
        return self.sql(f"CALL {self._catalog}.system.{procedure}({words})")

    def java(self):
        return self._spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, self._name)

    def snapshots(self) -> list[int]:
        return [row[0] for row in self.sql(f"SELECT snapshot_id FROM {self._name}.snapshots ORDER BY committed_at")]

    def refs(self, kind: str = "%") -> list[str]:
        return [row[0] for row in self.sql(f"SELECT name FROM {self._name}.refs WHERE type LIKE '{kind}' ORDER BY name")]

    def rows_of(self, snapshot: int) -> list[tuple]:
        return ordered(self.sql(f"SELECT * FROM {self._name} VERSION AS OF {snapshot}"))

    def grow(self, steps: int) -> None:
        possible = {name: weight for name, weight in WEIGHTS.items() if self.version >= ONLY_LATER.get(name, 1)}
        for _ in range(steps):
            self.do(self.chance.choices(list(possible), list(possible.values()))[0])

    def do(self, what: str) -> None:
        """Makes one change, unless the table has no rows or files for it."""
        if getattr(self, "_" + what.replace(" ", "_").replace("-", "_"))() is not False:
            self.done.append(what)

    def _values(self, rows: int) -> str:
        places = ["oslo", "rome", "lima"]
        made = [f"({self._rows + i}, '{self.chance.choice(places)}', {self.chance.randrange(100)})" for i in range(rows)]
        self._rows += rows
        return ", ".join(made)

    def _where(self) -> str:
        by = self.chance.choice([2, 3, 5])
        return f"id % {by} = {self.chance.randrange(by)}"

    def _branch_name(self):
        return self.chance.choice(self.refs("BRANCH"))

    def _append(self):
        self.sql(f"INSERT INTO {self._name} VALUES {self._values(self.chance.randint(1, 4))}")

    def _append_to_a_branch(self):
        self.sql(f"INSERT INTO {self._name}.branch_{self._branch_name()} VALUES {self._values(2)}")

    def _overwrite(self):
        self.sql(f"INSERT OVERWRITE {self._name} VALUES {self._values(3)}")

    def _delete(self):
        at = self.chance.choice(["", f".branch_{self._branch_name()}"])
        self.sql(f"DELETE FROM {self._name}{at} WHERE {self._where()}")

    def _update(self):
        self.sql(f"UPDATE {self._name} SET n = n + 1 WHERE {self._where()}")

    def _merge(self):
        if self._has_twice():
            return False
        self.sql(
            f"MERGE INTO {self._name} t USING (SELECT id * 2 AS id, place, n FROM {self._name} WHERE {self._where()} LIMIT 3) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + 10 WHEN NOT MATCHED THEN INSERT *"
        )

    def _has_twice(self) -> bool:
        """Whether the table has a duplicate row: Spark then refuses a merge."""
        return bool(self.sql(f"SELECT id FROM {self._name} GROUP BY id HAVING COUNT(*) > 1"))

    def _compact(self):
        if self._has_twice():  # Spark counts the rows of a file that is in the table twice once, and fails
            return False
        self.call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    def _rewrite_deletes(self):
        self.call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")

    def _rewrite_manifests(self):
        self.call("rewrite_manifests")

    def _tag(self):
        self.sql(f"ALTER TABLE {self._name} CREATE TAG t{len(self.done)} AS OF VERSION {self.chance.choice(self.snapshots())}")

    def _branch(self):
        self.sql(f"ALTER TABLE {self._name} CREATE BRANCH b{len(self.done)} AS OF VERSION {self.chance.choice(self.snapshots())}")

    def _others(self) -> list[str]:
        return [name for name in self.refs() if name != "main"]

    def _drop_a_ref(self):
        if not (names := self._others()):
            return False
        name = self.chance.choice(names)
        self.sql(f"ALTER TABLE {self._name} DROP {'TAG' if name.startswith('t') else 'BRANCH'} {name}")

    def _limit_a_ref(self):
        if not (names := self._others()):
            return False
        name = self.chance.choice(names)
        change = self.java().manageSnapshots()
        age = self.chance.choice([ALWAYS_MS, NEVER_MS])
        if name.startswith("t") or self.chance.random() < 0.4:
            change.setMaxRefAgeMs(name, age).commit()
        else:
            change.setMinSnapshotsToKeep(name, self.chance.randint(1, 4)).setMaxSnapshotAgeMs(name, age).commit()

    def _ancestors(self) -> list[int]:
        return [row[0] for row in self.sql(f"SELECT snapshot_id FROM {self._name}.history WHERE is_current_ancestor")]

    def _roll_back(self):
        if len(before := list(dict.fromkeys(self._ancestors()))[-4:-1]) == 0:
            return False
        self.call("rollback_to_snapshot", f"snapshot_id => {self.chance.choice(before)}")

    def _stage(self):
        """Stages an append without publishing it."""
        name = uuid.UUID(int=self.chance.getrandbits(128)).hex
        self._spark.conf.set("spark.wap.id", name)
        try:
            self._append()
        finally:
            self._spark.conf.unset("spark.wap.id")
        self._staged.append(name)

    def _publish(self):
        if not self._staged:
            self._stage()
        self.call("publish_changes", f"wap_id => '{self._staged.pop()}'")

    def _cherry_pick(self):
        self._stage()
        name = self._staged.pop()
        [(staged,)] = self.sql(f"SELECT snapshot_id FROM {self._name}.snapshots WHERE summary['wap.id'] = '{name}'")
        self._append()  # so that the pick is not a fast-forward
        self.call("cherrypick_snapshot", f"snapshot_id => {staged}")

    def _statistics(self):
        if self.partitioned and self.chance.random() < 0.5:
            self.call("compute_partition_stats")
        else:
            self.call("compute_table_stats")

    def _add_files_twice(self):
        """Adds the same external files in two snapshots."""
        place = self.folder / str(len(self.done))
        rows = f"SELECT * FROM VALUES {self._values(2)} AS t(id, place, n)"
        parts = "PARTITIONED BY (place)" if self.partitioned else ""
        self.sql(f"CREATE TABLE spark_catalog.default.given USING parquet {parts} LOCATION '{place}' AS {rows}")
        try:
            for _ in range(2):
                self.call("add_files", f"source_table => '`parquet`.`{place}`'", "check_duplicate_files => false")
                self._append()
        finally:
            self.sql("DROP TABLE spark_catalog.default.given")

    def _add_again(self):
        """Removes a file and adds it again later."""
        table = self.java()
        tasks = table.newScan().planFiles()
        listed = self._spark._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(tasks)
        files = [task.file() for task in listed]
        tasks.close()
        if not files:
            return False
        file = self.chance.choice(files)
        table.newDelete().deleteFile(file).commit()
        self._append()
        if self.chance.random() < 0.8:
            self.java().newAppend().appendFile(file).commit()

    def _shared_vectors(self):
        """Writes deletion vectors of several files into one Puffin file, and later replaces one of them."""
        for _ in range(2):
            self._append()
        self._update_mode("merge-on-read")
        self.sql(f"DELETE FROM {self._name} WHERE id % 2 = {self.chance.randrange(2)} AND place <> 'lima'")
        if self.shared():
            self.shares += 1
        self._append()
        self.sql(f"DELETE FROM {self._name} WHERE id = (SELECT MAX(id) FROM {self._name} WHERE n % 2 = 0)")

    def _update_mode(self, mode: str):
        self.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')")

    def shared(self) -> list[str]:
        """The Puffin files that contain more than one vector of the current snapshot."""
        found = self.sql(f"SELECT file_path FROM {self._name}.delete_files GROUP BY file_path HAVING COUNT(*) > 1")
        return [row[0] for row in found]
