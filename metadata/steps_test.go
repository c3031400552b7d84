package metadata_test

import (
	"testing"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata"
)

func decodeStep(t testing.TB, requirements, updates string) metadata.Step {
	t.Helper()
	r, err := checked(metadata.DecodeRequirements, "["+requirements+"]")
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := checked(metadata.DecodeUpdates, "["+updates+"]")
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return metadata.Step{r, u}
}

func headIs(snapshot string) string {
	return `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":` + snapshot + `}`
}

// Steps become one version. Requirements see the result of earlier steps, but logs and guards do
// not.
func TestApplySteps(t *testing.T) {
	t.Parallel()
	base := applyTest(t, createTest(t, 2), snapshotUpdates(1, 0, 1))
	rows := []struct {
		name    string
		steps   []metadata.Step
		logged  int // entries of metadata-log of the result
		current int64
		kind    moorage.Kind // of the error
		message string
	}{
		{name: "second on top of the first", logged: 2, current: 3, steps: []metadata.Step{
			decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2)), decodeStep(t, headIs("2"), snapshotUpdates(3, 2, 3))}},
		{name: "second requires what was before the first", kind: moorage.KindCommitFailed, message: "has changed", steps: []metadata.Step{
			decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2)), decodeStep(t, headIs("1"), snapshotUpdates(3, 2, 3))}},
		{name: "first fails", kind: moorage.KindCommitFailed, message: "has changed", steps: []metadata.Step{
			decodeStep(t, headIs("7"), ""), decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2))}},
		{name: "second cannot be applied", kind: moorage.KindValidation, message: "already exists", steps: []metadata.Step{
			decodeStep(t, "", snapshotUpdates(2, 1, 2)), decodeStep(t, "", snapshotUpdates(2, 1, 3))}},
		{name: "second has no last added schema", kind: moorage.KindValidation, message: "no schema has been added", steps: []metadata.Step{
			decodeStep(t, "", `{"action":"add-schema","schema":`+testSchema+`}`),
			decodeStep(t, "", `{"action":"set-current-schema","schema-id":-1}`)}},
		{name: "guard of a branch over two steps", kind: moorage.KindCommitFailed, message: "does not descend", steps: []metadata.Step{
			decodeStep(t, "", `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"sequence-number":4,"timestamp-ms":1700000000000,"manifest-list":"m"}}`),
			decodeStep(t, "", setMainTo("4"))}},
		{name: "only requirements", logged: 1, current: 1, steps: []metadata.Step{decodeStep(t, headIs("1"), ""), decodeStep(t, headIs("1"), "")}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(1)
			env.BaseLocation = "file:///base.metadata.json"
			next, err := metadata.ApplySteps(base, row.steps, env)
			if row.message != "" {
				checkRefused(t, "", err, row.kind, row.message)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if current, _ := next.CurrentSnapshotID(); current != row.current || len(next.MetadataLog()) != row.logged {
				t.Errorf("current snapshot %d, %d entries in the log; want %d and %d", current, len(next.MetadataLog()), row.current, row.logged)
			}
			if (next == base) != (row.logged == 1) {
				t.Error("a new document if something changes, and only then")
			}
		})
	}
}

// A table can be made in one step and changed in the next.
func TestApplyStepsCreates(t *testing.T) {
	t.Parallel()
	create := decodeStep(t, `{"type":"assert-create"}`, `{"action":"assign-uuid","uuid":"`+testUUID+`"},
		{"action":"set-location","location":"file:///t"},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}`)
	change := decodeStep(t, `{"type":"assert-table-uuid","uuid":"`+testUUID+`"}`, snapshotUpdates(1, 0, 1))
	d, err := metadata.ApplySteps(nil, []metadata.Step{create, change}, testEnv(1))
	if err != nil {
		t.Fatal(err)
	}
	if current, ok := d.CurrentSnapshotID(); !ok || current != 1 {
		t.Errorf("current snapshot %d", current)
	}
	_, err = metadata.ApplySteps(nil, []metadata.Step{create, create}, testEnv(1))
	checkRefused(t, "", err, moorage.KindCommitFailed, "already exists")
	_, err = metadata.ApplySteps(nil, []metadata.Step{change}, testEnv(1))
	checkRefused(t, "", err, moorage.KindNoSuchTable, "does not exist")
}

// checked decodes a part of a request like a server, which checks the whole body first.
func checked[T any, S ~string | ~[]byte](decode func(jsontext.Checked) (T, error), raw S) (T, error) {
	sound, err := jsontext.Check([]byte(raw))
	if err != nil {
		var none T
		return none, err
	}
	return decode(sound)
}
