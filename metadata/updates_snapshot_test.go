package metadata_test

var snapshotRows = []updateRow{
	{name: "snapshot", updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","key-id":"k","x":0.0`), want: map[string]string{
		"last-sequence-number": "1", "current-snapshot-id": "-1", "refs": "{}", "snapshot-log": "[]",
		"snapshots": `[{"snapshot-id":9,"timestamp-ms":1700000000000,"summary":{"operation":"append"},"sequence-number":1,"manifest-list":"m","key-id":"k","x":0.0}]`}},
	{name: "snapshot and main", updates: snapshotUpdates(1, 0, 1), want: map[string]string{
		"last-sequence-number": "1", "current-snapshot-id": "1", "refs": `{"main":{"snapshot-id":1,"type":"branch"}}`,
		"snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":1}]`}},
	{name: "snapshot with embedded manifests", version: 1, updates: bareSnapshot(`"manifests":["a","b"]`), want: map[string]string{"last-sequence-number": ""}},
	{name: "snapshot of v1 with a sequence number", version: 1, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m"`), kind: illegalKind, message: "Sequence number must be 0 in v1: 1"},
	{name: "snapshot is there", setup: snapshotUpdates(9, 0, 1), updates: bareSnapshot(`"sequence-number":2,"manifest-list":"m"`), kind: invalid, message: "Snapshot already exists for id: 9"},
	{name: "snapshot twice", updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m"`) + `,` + bareSnapshot(`"sequence-number":2,"manifest-list":"m"`), kind: invalid, message: "Snapshot already exists for id: 9"},
	{name: "snapshot with a number that is taken", setup: snapshotUpdates(1, 0, 5), updates: bareSnapshot(`"parent-snapshot-id":1,"sequence-number":5,"manifest-list":"m"`),
		kind: stale, message: "Cannot add snapshot with sequence number 5 older than last sequence number 5"},
	{name: "snapshot without parent keeps the highest number", setup: snapshotUpdates(1, 0, 34), updates: bareSnapshot(`"sequence-number":5,"manifest-list":"m"`), want: map[string]string{"last-sequence-number": "34"}},
	{name: "snapshot ahead by a minute", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1700000060000,"manifest-list":"m"}}`,
		want: map[string]string{"last-updated-ms": "1700000060000"}},
	{name: "snapshot ahead by more", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1700000060001,"manifest-list":"m"}}`,
		kind: illegalKind, message: "Invalid snapshot timestamp 1700000060001"},
	{name: "snapshot at the end of time", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":9223372036854775807,"manifest-list":"m"}}`,
		kind: illegalKind, message: "Invalid snapshot timestamp"},
	{name: "snapshot behind the log", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":2,"parent-snapshot-id":1,"sequence-number":2,"timestamp-ms":1600000000000,"manifest-list":"m"}},` + setMainTo("2"),
		kind: illegalKind, message: "Expected sorted snapshot-log entries"},
	{name: "snapshot behind the log, not main", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":2,"parent-snapshot-id":1,"sequence-number":2,"timestamp-ms":1600000000000,"manifest-list":"m"}}`,
		want: map[string]string{"last-updated-ms": "1700000000000"}},
	{name: "snapshot with an id beyond float64", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":9007199254740993,"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"m"}},` + setMainTo("9007199254740993"),
		want: map[string]string{"current-snapshot-id": "9007199254740993"}},
	{name: "snapshot without files", updates: bareSnapshot(`"sequence-number":1`), kind: bad, message: "Cannot parse missing list: manifests", decode: true},
	{name: "snapshot without time", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"manifest-list":"m"}}`, kind: bad, message: "timestamp-ms", decode: true},
	{name: "snapshot with an id beyond int64", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":9223372036854775808,"timestamp-ms":1,"manifest-list":"m"}}`, kind: bad, message: "long value: snapshot-id", decode: true},
	{name: "snapshot with an id with exponent", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1e3,"timestamp-ms":1,"manifest-list":"m"}}`, kind: bad, message: "long value: snapshot-id", decode: true},
	{name: "snapshot with a null parent", updates: bareSnapshot(`"parent-snapshot-id":null,"manifest-list":"m"`), kind: bad, message: "long value: parent-snapshot-id", decode: true},
	{name: "snapshot with a summary of numbers", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"m","summary":{"n":1}}}`, kind: bad, message: "string value: n", decode: true},
	{name: "snapshot with a null summary", updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"m","summary":null}}`, kind: bad, message: "Cannot parse summary from non-object value: null", decode: true},
	{name: "snapshot null", updates: `{"action":"add-snapshot","snapshot":null}`, kind: bad, message: "missing field: snapshot", decode: true},

	{name: "rows", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":0,"added-rows":7`), want: map[string]string{"next-row-id": "7"}},
	{name: "rows after a gap", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":100,"added-rows":7`), want: map[string]string{"next-row-id": "107"}},
	{name: "rows missing", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m"`), kind: invalid, message: "Cannot add a snapshot: first-row-id is null"},
	{name: "rows null", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":null`), kind: invalid, message: "first-row-id is null"},
	{name: "rows that are taken", version: 3, setup: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":0,"added-rows":7`),
		updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":2,"sequence-number":2,"timestamp-ms":1700000000000,"manifest-list":"m","first-row-id":6,"added-rows":1}}`,
		kind:    stale, message: "Cannot add a snapshot, first-row-id is behind table next-row-id: 6 < 7"},
	{name: "rows uncounted", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":0`), kind: illegalKind, message: "Invalid added-rows", decode: true},
	{name: "rows negative", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":0,"added-rows":-1`), kind: illegalKind, message: "Invalid added-rows (cannot be negative): -1", decode: true},
	{name: "rows beyond 64 bits", version: 3, updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":9223372036854775807,"added-rows":1`), kind: illegalKind, message: "exceed 64 bits"},
	{name: "rows in v2 are kept", updates: bareSnapshot(`"sequence-number":1,"manifest-list":"m","first-row-id":5,"added-rows":1`), want: map[string]string{"next-row-id": "",
		"snapshots": `[{"snapshot-id":9,"timestamp-ms":1700000000000,"summary":{"operation":"append"},"sequence-number":1,"manifest-list":"m","first-row-id":5,"added-rows":1}]`}},
}

// three is a table with snapshots 1, 2, 3 on main.
var three = snapshotUpdates(1, 0, 1) + `,` + snapshotUpdates(2, 1, 2) + `,` + snapshotUpdates(3, 2, 3)

// oneAdded is a new snapshot on the head of main.
const oneAdded = `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"parent-snapshot-id":3,"sequence-number":4,"timestamp-ms":1700000000000,"manifest-list":"m"}}`

// orphan is a new snapshot that does not descend from anything.
const orphan = `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"sequence-number":4,"timestamp-ms":1700000000000,"manifest-list":"m"}}`

// sibling is a new snapshot beside the head of main.
const sibling = `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"parent-snapshot-id":2,"sequence-number":4,"timestamp-ms":1700000000000,"manifest-list":"m"}}`

var refRows = []updateRow{
	{name: "ref tag", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"t","type":"TAG","snapshot-id":1,"max-ref-age-ms":5,"min-snapshots-to-keep":null}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"},"t":{"snapshot-id":1,"type":"tag","max-ref-age-ms":5}}`}},
	{name: "ref branch with retention", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"min-snapshots-to-keep":3,"max-snapshot-age-ms":4,"max-ref-age-ms":5}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"},"b":{"snapshot-id":1,"type":"branch","min-snapshots-to-keep":3,"max-snapshot-age-ms":4,"max-ref-age-ms":5}}`, "current-snapshot-id": "1"}},
	{name: "ref with a name to escape", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"a\"/\u0001é","type":"tag","snapshot-id":1}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"},"a\"/\u0001é":{"snapshot-id":1,"type":"tag"}}`}},
	{name: "ref same", setup: snapshotUpdates(1, 0, 1), updates: setMainTo("1"), unchanged: true},
	{name: "ref without retention clears it", setup: snapshotUpdates(1, 0, 1) + `,{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"max-ref-age-ms":5}`, updates: tagT,
		want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"},"t":{"snapshot-id":1,"type":"tag"}}`}},
	{name: "ref from branch to tag", setup: snapshotUpdates(1, 0, 1) + `,` + branchB, updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"tag","snapshot-id":1}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"},"b":{"snapshot-id":1,"type":"tag"}}`}},
	{name: "ref to an unknown snapshot", updates: setMainTo("5"), kind: invalid, message: "Cannot set main to unknown snapshot: 5"},
	{name: "ref main as tag", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":1}`, kind: invalid, message: "Cannot set main to a tag, it must be a branch"},
	{name: "ref tag with min-snapshots-to-keep", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"min-snapshots-to-keep":1}`, kind: illegalKind, message: "Tags do not support setting minSnapshotsToKeep"},
	{name: "ref tag with max-snapshot-age-ms", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"max-snapshot-age-ms":1}`, kind: illegalKind, message: "Tags do not support setting maxSnapshotAgeMs"},
	{name: "ref keeps no snapshot", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"min-snapshots-to-keep":0}`, kind: illegalKind, message: "Min snapshots to keep must be greater than 0"},
	{name: "ref of no snapshot age", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"max-snapshot-age-ms":-1}`, kind: illegalKind, message: "Max snapshot age must be greater than 0 ms"},
	{name: "ref of no age", setup: snapshotUpdates(1, 0, 1), updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"max-ref-age-ms":0}`, kind: illegalKind, message: "Max reference age must be greater than 0"},
	{name: "ref of unknown type", updates: `{"action":"set-snapshot-ref","ref-name":"b","type":"twig","snapshot-id":1}`, kind: illegalKind, message: "twig", decode: true},
	{name: "ref without name", updates: `{"action":"set-snapshot-ref","type":"tag","snapshot-id":1}`, kind: bad, message: "missing field: ref-name", decode: true},
	{name: "ref without type", updates: `{"action":"set-snapshot-ref","ref-name":"t","snapshot-id":1}`, kind: bad, message: "missing field: type", decode: true},

	{name: "rollback is logged now", setup: three, updates: setMainTo("1"), want: map[string]string{"current-snapshot-id": "1",
		"snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":3},{"timestamp-ms":1700000000000,"snapshot-id":1}]`}},
	{name: "several commits in one", setup: snapshotUpdates(1, 0, 1), updates: snapshotUpdates(2, 1, 2) + `,` + snapshotUpdates(3, 2, 3), want: map[string]string{"current-snapshot-id": "3",
		"snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":1},{"timestamp-ms":1700000000000,"snapshot-id":3}]`}},
	{name: "replace keeps the log", setup: snapshotUpdates(1, 0, 1), updates: removeMain + `,{"action":"add-snapshot","snapshot":{"snapshot-id":2,"sequence-number":2,"timestamp-ms":1700000000000,"manifest-list":"m"}},` + setMainTo("2"),
		want: map[string]string{"current-snapshot-id": "2", "snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":1},{"timestamp-ms":1700000000000,"snapshot-id":2}]`}},
	{name: "main removed", setup: snapshotUpdates(1, 0, 1), updates: removeMain, want: map[string]string{"current-snapshot-id": "-1", "refs": "{}", "snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":1}]`}},
	{name: "main removed in v3", version: 3, setup: `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"m","first-row-id":0,"added-rows":0}},` + setMainTo("1"),
		updates: removeMain, want: map[string]string{"current-snapshot-id": "null"}},
	{name: "ref removed", setup: snapshotUpdates(1, 0, 1) + `,` + tagT, updates: `{"action":"remove-snapshot-ref","ref-name":"t"}`, want: map[string]string{"refs": `{"main":{"snapshot-id":1,"type":"branch"}}`}},
	{name: "ref removed: not there", updates: `{"action":"remove-snapshot-ref","ref-name":"t"}`, unchanged: true},
	{name: "ref removed: no name", updates: `{"action":"remove-snapshot-ref"}`, kind: bad, message: "missing string: ref-name", decode: true},

	{name: "lineage: child of the head", setup: three, updates: oneAdded + `,` + setMainTo("4"), want: map[string]string{"current-snapshot-id": "4"}},
	{name: "lineage: sibling of the head", setup: three, updates: sibling + `,` + setMainTo("4"), kind: stale, message: "does not descend from its head 3"},
	{name: "lineage: no parent", setup: three, updates: orphan + `,` + setMainTo("4"), kind: stale, message: "does not descend from its head 3"},
	{name: "lineage: of another branch", setup: three + `,` + branchB, updates: orphan + `,{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":4}`, kind: stale, message: "Cannot set branch b"},
	{name: "lineage: branch far behind", setup: three + `,` + branchB, updates: oneAdded + `,{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":4}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":3,"type":"branch"},"b":{"snapshot-id":4,"type":"branch"}}`}},
	{name: "lineage: the branch was removed before", setup: three, updates: removeMain + `,` + orphan + `,` + setMainTo("4"), want: map[string]string{"current-snapshot-id": "4"}},
	{name: "lineage: the branch is removed after", setup: three, updates: orphan + `,` + setMainTo("4") + `,` + removeMain, kind: stale, message: "does not descend"},
	{name: "lineage: the branch was moved before", setup: three, updates: setMainTo("2") + `,` + sibling + `,` + setMainTo("4"), want: map[string]string{"current-snapshot-id": "4"}},
	{name: "lineage: a tag may move", setup: three + `,` + tagT, updates: orphan + `,{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":4}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":3,"type":"branch"},"t":{"snapshot-id":4,"type":"tag"}}`}},
	{name: "lineage: a new branch may begin anywhere", setup: three, updates: orphan + `,{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":4}`,
		want: map[string]string{"refs": `{"main":{"snapshot-id":3,"type":"branch"},"b":{"snapshot-id":4,"type":"branch"}}`}},
	{name: "lineage: parents in a circle", setup: three, updates: `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"parent-snapshot-id":5,"sequence-number":4,"timestamp-ms":1,"manifest-list":"m"}},
		{"action":"add-snapshot","snapshot":{"snapshot-id":5,"parent-snapshot-id":4,"sequence-number":5,"timestamp-ms":1,"manifest-list":"m"}},` + setMainTo("5"), kind: stale, message: "does not descend"},
}

var removalRows = []updateRow{
	{name: "snapshots removed", setup: three, updates: `{"action":"remove-snapshots","snapshot-ids":[1,99]}`, want: map[string]string{"current-snapshot-id": "3",
		"snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":3}]`}},
	{name: "snapshots removed: unknown", setup: three, updates: `{"action":"remove-snapshots","snapshot-ids":[99]}`, unchanged: true},
	{name: "snapshots removed: none", setup: three, updates: `{"action":"remove-snapshots","snapshot-ids":[]}`, unchanged: true},
	{name: "snapshots removed: current", setup: three, updates: `{"action":"remove-snapshots","snapshot-ids":[3]}`, want: map[string]string{"current-snapshot-id": "-1", "refs": "{}", "snapshot-log": "[]"}},
	{name: "snapshots removed: all", setup: three, updates: `{"action":"remove-snapshots","snapshot-ids":[3,2,1,1]}`, want: map[string]string{"current-snapshot-id": "-1", "refs": "{}", "snapshots": "[]", "last-sequence-number": "3"}},
	{name: "snapshots removed with tag", setup: three + `,` + tagT, updates: `{"action":"remove-snapshots","snapshot-ids":[1]}`, want: map[string]string{"refs": `{"main":{"snapshot-id":3,"type":"branch"}}`}},
	{name: "snapshots removed with statistics", setup: three + `,{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":[]}},
		{"action":"set-statistics","statistics":` + statsOf7 + `},{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"q","file-size-in-bytes":1}}`,
		updates: `{"action":"remove-snapshots","snapshot-ids":[1,7]}`, want: map[string]string{"statistics": `[` + statsOf7 + `]`, "partition-statistics": `[]`}},
	{name: "snapshots removed: just added", setup: snapshotUpdates(1, 0, 1), updates: snapshotUpdates(2, 1, 2) + `,{"action":"remove-snapshots","snapshot-ids":[2]}`,
		want: map[string]string{"current-snapshot-id": "-1", "snapshot-log": "[]", "last-sequence-number": "2"}},
	{name: "snapshots removed: the head's log entry stays last", setup: snapshotUpdates(1, 0, 1) + `,` + removeMain, updates: snapshotUpdates(2, 1, 2) + `,{"action":"remove-snapshots","snapshot-ids":[1]}`,
		want: map[string]string{"current-snapshot-id": "2", "snapshot-log": `[{"timestamp-ms":1700000000000,"snapshot-id":2}]`}},
	{name: "snapshots removed: no integers", updates: `{"action":"remove-snapshots","snapshot-ids":[1.0]}`, kind: bad, message: "long value", decode: true},
	{name: "snapshots removed: null", updates: `{"action":"remove-snapshots","snapshot-ids":null}`, kind: bad, message: "snapshot-ids", decode: true},
}

var statisticsRows = []updateRow{
	{name: "statistics", updates: `{"action":"set-statistics","snapshot-id":99,"statistics":` + statsOf7 + `}`, want: map[string]string{"statistics": `[` + statsOf7 + `]`}},
	{name: "statistics replaced", setup: `{"action":"set-statistics","statistics":` + statsOf7 + `}`,
		updates: `{"action":"set-statistics","statistics":{"snapshot-id":7,"statistics-path":"new","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":[{"type":"t","snapshot-id":7,"sequence-number":1,"fields":[]}],"key-metadata":"x"}}`,
		want:    map[string]string{"statistics": `[{"snapshot-id":7,"statistics-path":"new","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":[{"type":"t","snapshot-id":7,"sequence-number":1,"fields":[]}],"key-metadata":"x"}]`}},
	{name: "statistics removed", setup: `{"action":"set-statistics","statistics":` + statsOf7 + `}`, updates: `{"action":"remove-statistics","snapshot-id":7}`, want: map[string]string{"statistics": `[]`}},
	{name: "statistics removed: not there", updates: `{"action":"remove-statistics","snapshot-id":7}`, unchanged: true},
	{name: "statistics without blobs", updates: `{"action":"set-statistics","statistics":{"snapshot-id":7,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":2}}`, kind: bad, message: "missing field: blob-metadata", decode: true},
	{name: "statistics with null blobs", updates: `{"action":"set-statistics","statistics":{"snapshot-id":7,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":null}}`, kind: bad, message: "an array is expected", decode: true},
	{name: "statistics with null blob properties", updates: `{"action":"set-statistics","statistics":{"snapshot-id":7,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":2,"blob-metadata":[{"type":"t","snapshot-id":7,"sequence-number":1,"fields":[],"properties":null}]}}`,
		kind: bad, message: "Cannot parse string map from non-object value: properties", decode: true},
	{name: "statistics removed: no id", updates: `{"action":"remove-statistics"}`, kind: bad, message: "missing long: snapshot-id", decode: true},
	{name: "partition statistics", updates: `{"action":"set-partition-statistics","partition-statistics":` + partsOf7 + `}`, want: map[string]string{"partition-statistics": `[` + partsOf7 + `]`, "statistics": `[]`}},
	{name: "partition statistics removed", setup: `{"action":"set-partition-statistics","partition-statistics":` + partsOf7 + `}`, updates: `{"action":"remove-partition-statistics","snapshot-id":7}`, want: map[string]string{"partition-statistics": `[]`}},
	{name: "partition statistics removed: not there", updates: `{"action":"remove-partition-statistics","snapshot-id":7}`, unchanged: true},
	{name: "partition statistics without path", updates: `{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":7,"file-size-in-bytes":1}}`, kind: bad, message: "missing field: statistics-path", decode: true},
	{name: "partition statistics removed: no id", updates: `{"action":"remove-partition-statistics","snapshot-id":null}`, kind: bad, message: "long value", decode: true},
}
