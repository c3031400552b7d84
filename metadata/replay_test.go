package metadata_test

import (
	"strings"
	"testing"

	"moorage/metadata"
)

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
		after string // later updates
		again string // updates that are checked
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
			step := func(updates string) []metadata.Step {
				return []metadata.Step{decodeStep(t, `{"type":"assert-create"}`, updates)}
			}
			d, err := metadata.ApplySteps(nil, step(row.made), testEnv(1))
			if err != nil {
				t.Fatal(err)
			}
			if row.after != "" {
				d = applyTest(t, d, row.after)
			}
			if got := d.WasCreatedBy(step(row.again)); got != row.want {
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
	property := func(value string) string { return `{"action":"set-properties","updates":{"a":"` + value + `"}}` }
	replace := removeMain + `,{"action":"set-location","location":"file:///tmp/t"},{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":9,"name":"new","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[{"source-id":9,"field-id":1001,"name":"new","transform":"identity"}]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"source-id":9,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"remove-properties","removals":["gone"]},` + property("b") + `,` + snapshot("9", "file:///tmp/t/metadata/snap-9.avro") + `,` + head + `9}`
	const wider = `{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":9,"name":"new","required":false,"type":"long"},{"id":10,"name":"b","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}`
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
		{"a property with it", property("b"), snapshotUpdates(3, 2, 3) + `,` + property("b"), true},
		{"a property with it that was changed since", property("c"), snapshotUpdates(3, 2, 3) + `,` + property("b"), false},
		{"a property that was removed with it", "", snapshotUpdates(3, 2, 3) + `,{"action":"remove-properties","removals":["a"]}`, true},
		{"a property that is there again", property("b"), snapshotUpdates(3, 2, 3) + `,{"action":"remove-properties","removals":["a"]}`, false},
		{"a table that was replaced", replace, replace, true},
		{"another replacement", "", replace, false},
		{"a table that was replaced and appended to", replace + `,` + snapshotUpdates(10, 9, 10), replace, true},
		{"a table that was replaced and altered", replace + `,` + wider, replace, false},
		{"a ref that was removed with it", "", snapshotUpdates(3, 2, 3) + `,{"action":"remove-snapshot-ref","ref-name":"b"}`, true},
		{"a ref that was removed with it and is there", `{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":2}`, snapshotUpdates(3, 2, 3) + `,{"action":"remove-snapshot-ref","ref-name":"b"}`, false},
		{"a ref that was removed last", "", snapshotUpdates(3, 2, 3) + `,` + removeMain, false},
		{"an update that is not compared", "", snapshotUpdates(3, 2, 3) + `,{"action":"remove-statistics","snapshot-id":3}`, false},
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
			parsed, err := metadata.Parse(d.Raw())
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.IsReplay(updates); got != row.want {
				t.Errorf("read again: got %t", got)
			}
		})
	}
}
