package metadata_test

import (
	"testing"

	"moorage"
	"moorage/metadata"
)

// requirementRow is a requirement, checked against the table that requirementTable makes.
type requirementRow struct {
	name        string
	requirement string
	kind        moorage.Kind // of the error, if message is not empty
	message     string       // the whole error
}

// requirementTable has main and branch b at snapshot 3, tag t at 1.
func requirementTable(t testing.TB) *metadata.Document {
	t.Helper()
	return applyTest(t, createTest(t, 2), three+`,`+tagT+`,
		{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":3}`)
}

var requirementRows = []requirementRow{
	{name: "create", requirement: `{"type":"assert-create"}`, kind: stale, message: "Requirement failed: table already exists"},
	{name: "uuid", requirement: `{"type":"assert-table-uuid","uuid":"` + testUUID + `"}`},
	{name: "uuid in another case", requirement: `{"type":"ASSERT-TABLE-UUID","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}`},
	{name: "uuid other", requirement: `{"type":"assert-table-uuid","uuid":"x"}`, kind: stale,
		message: "Requirement failed: UUID does not match: expected " + testUUID + " != x"},
	{name: "uuid missing", requirement: `{"type":"assert-table-uuid"}`, kind: bad, message: "Cannot parse missing string: uuid"},
	{name: "ref", requirement: `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3}`},
	{name: "ref moved", requirement: `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}`, kind: stale,
		message: "Requirement failed: branch main has changed: expected id 2 != 3"},
	{name: "tag moved", requirement: `{"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":2}`, kind: stale,
		message: "Requirement failed: tag t has changed: expected id 2 != 1"},
	{name: "ref is new", requirement: `{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":null}`},
	{name: "ref is new, without null", requirement: `{"type":"assert-ref-snapshot-id","ref":"new"}`},
	{name: "branch is not new", requirement: `{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":null}`, kind: stale,
		message: "Requirement failed: branch b was created concurrently"},
	{name: "tag is not new", requirement: `{"type":"assert-ref-snapshot-id","ref":"t"}`, kind: stale,
		message: "Requirement failed: tag t was created concurrently"},
	{name: "ref is gone", requirement: `{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":9007199254740993}`, kind: stale,
		message: "Requirement failed: branch or tag new is missing, expected 9007199254740993"},
	{name: "ref unnamed", requirement: `{"type":"assert-ref-snapshot-id","snapshot-id":1}`, kind: bad, message: "Cannot parse missing string: ref"},
	{name: "ref at a string", requirement: `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":"3"}`, kind: bad,
		message: `Cannot parse to a long value: snapshot-id: "3"`},
	{name: "field id", requirement: `{"type":"assert-last-assigned-field-id","last-assigned-field-id":3}`},
	{name: "field id moved", requirement: `{"type":"assert-last-assigned-field-id","last-assigned-field-id":2}`, kind: stale,
		message: "Requirement failed: last assigned field id changed: expected id 2 != 3"},
	{name: "schema", requirement: `{"type":"assert-current-schema-id","current-schema-id":0}`},
	{name: "schema moved", requirement: `{"type":"assert-current-schema-id","current-schema-id":4}`, kind: stale,
		message: "Requirement failed: current schema changed: expected id 4 != 0"},
	{name: "partition id", requirement: `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1000}`},
	{name: "partition id moved", requirement: `{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":999}`, kind: stale,
		message: "Requirement failed: last assigned partition id changed: expected id 999 != 1000"},
	{name: "spec", requirement: `{"type":"assert-default-spec-id","default-spec-id":0}`},
	{name: "spec moved", requirement: `{"type":"assert-default-spec-id","default-spec-id":1}`, kind: stale,
		message: "Requirement failed: default partition spec changed: expected id 1 != 0"},
	{name: "order", requirement: `{"type":"assert-default-sort-order-id","default-sort-order-id":0}`},
	{name: "order moved", requirement: `{"type":"assert-default-sort-order-id","default-sort-order-id":1}`, kind: stale,
		message: "Requirement failed: default sort order changed: expected id 1 != 0"},
	{name: "id no integer", requirement: `{"type":"assert-default-sort-order-id","default-sort-order-id":1.5}`, kind: bad,
		message: "Cannot parse to an integer value: default-sort-order-id: 1.5"},
	{name: "id missing", requirement: `{"type":"assert-default-spec-id"}`, kind: bad, message: "Cannot parse missing int: default-spec-id"},
	{name: "of a view", requirement: `{"type":"assert-view-uuid","uuid":"x"}`, kind: invalid, message: "Cannot validate AssertViewUUID against a table"},
	{name: "unknown", requirement: `{"type":"assert-peace"}`, kind: bad, message: "Unrecognized update requirement: assert-peace"},
	{name: "no type", requirement: `{"uuid":"x"}`, kind: bad, message: "Cannot parse update requirement. Missing field: type"},
	{name: "no object", requirement: `7`, kind: bad, message: "Cannot parse requirement from non-object: 7"},
	{name: "type twice", requirement: `{"type":"assert-create","type":"assert-create"}`, kind: bad, message: `Cannot parse JSON: duplicate key "type" at byte 31`},
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	d := requirementTable(t)
	for _, row := range requirementRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			requirements, err := metadata.StrictRequirements([]byte("[" + row.requirement + "]"))
			if err == nil {
				err = metadata.Check(d, requirements)
			}
			if row.message == "" && err == nil {
				return
			}
			if moorage.KindOf(err) != row.kind || moorage.MessageOf(err) != row.message {
				t.Errorf("got %v (%v), want %q (%v)", err, moorage.KindOf(err), row.message, row.kind)
			}
		})
	}
}

func decodeRequirements(t *testing.T, raw string) []metadata.Requirement {
	t.Helper()
	requirements, err := checked(metadata.DecodeRequirements, raw)
	if err != nil {
		t.Fatal(err)
	}
	return requirements
}

func TestFirstFailureIsReported(t *testing.T) {
	t.Parallel()
	requirements := decodeRequirements(t, `[{"type":"assert-current-schema-id","current-schema-id":0},
		{"type":"assert-default-spec-id","default-spec-id":8},{"type":"assert-current-schema-id","current-schema-id":9}]`)
	err := metadata.Check(createTest(t, 2), requirements)
	if got, want := moorage.MessageOf(err), "Requirement failed: default partition spec changed: expected id 8 != 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRequirementsWithoutTable(t *testing.T) {
	t.Parallel()
	if err := metadata.Check(nil, decodeRequirements(t, `[{"type":"assert-create"}]`)); err != nil {
		t.Errorf("assert-create: %v", err)
	}
	err := metadata.Check(nil, decodeRequirements(t, `[{"type":"assert-current-schema-id","current-schema-id":0}]`))
	if kind := moorage.KindOf(err); kind != moorage.KindNoSuchTable {
		t.Errorf("assert-current-schema-id: %v (%v)", err, kind)
	}
}

func TestIsCreate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		requirements string
		create, uuid bool
		fails        bool
	}{
		{requirements: `[]`},
		{requirements: `[{"type":"assert-create"}]`, create: true},
		{requirements: `[{"type":"Assert-Create"},{"type":"assert-create"}]`, create: true},
		{requirements: `[{"type":"assert-table-uuid","uuid":"x"}]`, uuid: true},
		{requirements: `[{"type":"assert-create"},{"type":"assert-table-uuid","uuid":"x"}]`, uuid: true, fails: true},
	} {
		requirements := decodeRequirements(t, row.requirements)
		create, err := metadata.IsCreate(requirements)
		if create != row.create || (err != nil) != row.fails || metadata.AssertsUUID(requirements) != row.uuid {
			t.Errorf("%s: create %t, %v, asserts uuid %t", row.requirements, create, err, metadata.AssertsUUID(requirements))
		}
		if err != nil && moorage.KindOf(err) != moorage.KindIllegalArgument {
			t.Errorf("%s: kind %v", row.requirements, moorage.KindOf(err))
		}
	}
}
