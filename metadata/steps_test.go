package metadata

import (
	"strings"
	"testing"

	"moorage"
)

func decodeStep(t testing.TB, requirements, updates string) Step {
	t.Helper()
	r, err := CheckedJSON("[" + requirements + "]").Requirements()
	if err != nil {
		t.Fatalf("decode %s: %v", requirements, err)
	}
	u, err := CheckedJSON("[" + updates + "]").Updates()
	if err != nil {
		t.Fatalf("decode %s: %v", updates, err)
	}
	return Step{r, u}
}

func headIs(snapshot string) string {
	return `{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":` + snapshot + `}`
}

// Steps are one version: requirements see what the steps before made, logs and guards do not.
func TestApplySteps(t *testing.T) {
	t.Parallel()
	base := applyTest(t, createTest(t, 2), snapshotUpdates(1, 0, 1))
	rows := []struct {
		name    string
		steps   []Step
		logged  int // entries of metadata-log of the result
		current int64
		kind    moorage.Kind // of the error
		message string
	}{
		{name: "second on top of the first", logged: 2, current: 3, steps: []Step{
			decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2)), decodeStep(t, headIs("2"), snapshotUpdates(3, 2, 3))}},
		{name: "second requires what was before the first", kind: moorage.KindCommitFailed, message: "has changed", steps: []Step{
			decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2)), decodeStep(t, headIs("1"), snapshotUpdates(3, 2, 3))}},
		{name: "first fails", kind: moorage.KindCommitFailed, message: "has changed", steps: []Step{
			decodeStep(t, headIs("7"), ""), decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2))}},
		{name: "second cannot be applied", kind: moorage.KindValidation, message: "already exists", steps: []Step{
			decodeStep(t, "", snapshotUpdates(2, 1, 2)), decodeStep(t, "", snapshotUpdates(2, 1, 3))}},
		{name: "second has no last added schema", kind: moorage.KindValidation, message: "no schema has been added", steps: []Step{
			decodeStep(t, "", `{"action":"add-schema","schema":`+testSchema+`}`),
			decodeStep(t, "", `{"action":"set-current-schema","schema-id":-1}`)}},
		{name: "guard of a branch over two steps", kind: moorage.KindCommitFailed, message: "does not descend", steps: []Step{
			decodeStep(t, "", `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"sequence-number":4,"timestamp-ms":1700000000000,"manifest-list":"m"}}`),
			decodeStep(t, "", setMainTo("4"))}},
		{name: "only requirements", logged: 1, current: 1, steps: []Step{decodeStep(t, headIs("1"), ""), decodeStep(t, headIs("1"), "")}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(1)
			env.BaseLocation = "file:///base.metadata.json"
			next, err := ApplySteps(base, row.steps, env)
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
	d, err := ApplySteps(nil, []Step{create, change}, testEnv(1))
	if err != nil {
		t.Fatal(err)
	}
	if current, ok := d.CurrentSnapshotID(); !ok || current != 1 {
		t.Errorf("current snapshot %d", current)
	}
	_, err = ApplySteps(nil, []Step{create, create}, testEnv(1))
	checkRefused(t, "", err, moorage.KindCommitFailed, "already exists")
	_, err = ApplySteps(nil, []Step{change}, testEnv(1))
	checkRefused(t, "", err, moorage.KindNoSuchTable, "does not exist")
}

func TestIsBirth(t *testing.T) {
	t.Parallel()
	assign := func(uuid string) string { return `{"action":"assign-uuid","uuid":"` + uuid + `"},` }
	const rest = `{"action":"set-location","location":"file:///t"},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}`
	const own, another = testUUID, "00000000-0000-4000-8000-00000000000b"
	withSnapshot := rest + `,` + snapshotUpdates(1, 0, 1)
	rows := []struct {
		name  string
		made  string // updates that made the table
		after string // updates that came since
		again string // updates that are looked at
		want  bool
	}{
		{"the same", assign(own) + withSnapshot, "", assign(own) + withSnapshot, true},
		{"the uuid in other letters", assign(own) + withSnapshot, "", assign(strings.ToUpper(own)) + withSnapshot, true},
		{"the same without a snapshot", assign(own) + rest, "", assign(own) + rest, false},
		{"changed since", assign(own) + withSnapshot, snapshotUpdates(2, 1, 2), assign(own) + withSnapshot, true},
		{"another table", assign(own) + withSnapshot, "", assign(another) + withSnapshot, false},
		{"no uuid", assign(own) + withSnapshot, "", withSnapshot, false},
		{"a snapshot that is not there", assign(own) + rest, "", assign(own) + withSnapshot, false},
		{"the branch is gone", assign(own) + withSnapshot, removeMain, assign(own) + withSnapshot, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			step := func(updates string) []Step { return []Step{decodeStep(t, `{"type":"assert-create"}`, updates)} }
			d, err := ApplySteps(nil, step(row.made), testEnv(1))
			if err != nil {
				t.Fatal(err)
			}
			if row.after != "" {
				d = applyTest(t, d, row.after)
			}
			if got := d.IsBirth(step(row.again)); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestIsReplay(t *testing.T) {
	t.Parallel()
	const head = `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":`
	snapshot := func(id, list string) string {
		return `{"action":"add-snapshot","snapshot":{"snapshot-id":` + id + `,"sequence-number":9,"timestamp-ms":1700000000000,"manifest-list":"` + list + `"}}`
	}
	rows := []struct {
		name    string
		after   string // updates that came after the first attempt
		updates string
		want    bool
	}{
		{"the same", "", snapshotUpdates(3, 2, 3), true},
		{"others on top", snapshotUpdates(4, 3, 4), snapshotUpdates(3, 2, 3), true},
		{"two at once", "", snapshotUpdates(2, 1, 2) + `,` + snapshotUpdates(3, 2, 3), true},
		{"nothing at all", "", "", true},
		{"without a ref", "", `{"action":"add-snapshot","snapshot":{"snapshot-id":3,"parent-snapshot-id":2,"sequence-number":3,"timestamp-ms":1700000000000,"manifest-list":"file:///tmp/t/metadata/snap-3.avro"}}`, true},
		{"not there", "", snapshotUpdates(4, 3, 4), false},
		{"one of two is not there", "", snapshotUpdates(3, 2, 3) + `,` + snapshotUpdates(4, 3, 4), false},
		{"another manifest list", "", snapshot("3", "other") + `,` + head + `3}`, false},
		{"without a manifest list", "", `{"action":"add-snapshot","snapshot":{"snapshot-id":3,"timestamp-ms":1700000000000,"manifests":["m"]}}`, false},
		{"rolled back since", setMainTo("1"), snapshotUpdates(3, 2, 3), false},
		{"the branch is gone", removeMain, snapshotUpdates(3, 2, 3), false},
		{"expired since", `{"action":"remove-snapshots","snapshot-ids":[2]}`, snapshotUpdates(2, 1, 2), false},
		{"another update with it", "", snapshotUpdates(3, 2, 3) + `,{"action":"set-properties","updates":{"a":"b"}}`, false},
		{"a rollback, which adds nothing", "", setMainTo("3"), false},
		{"another branch", "", snapshot("3", "file:///tmp/t/metadata/snap-3.avro") + `,{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":3}`, false},
		{"other retention", "", snapshot("3", "file:///tmp/t/metadata/snap-3.avro") + `,{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":3,"max-ref-age-ms":5}`, false},
		{"a tag of that name", "", snapshot("3", "file:///tmp/t/metadata/snap-3.avro") + `,{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":3}`, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := applyTest(t, createTest(t, 2), three)
			if row.after != "" {
				d = applyTest(t, d, row.after)
			}
			updates := decodeStep(t, "", row.updates).Updates
			if got := d.IsReplay(updates); got != row.want {
				t.Errorf("got %t", got)
			}
			parsed, err := Parse(d.Raw())
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.IsReplay(updates); got != row.want {
				t.Errorf("read again: got %t", got)
			}
		})
	}
}
