package metadata_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// A chain combines several requests into one version: one entry in the metadata log, and the
// snapshots and properties of all requests that joined.
func TestChain(t *testing.T) {
	t.Parallel()
	base := applyTest(t, createTest(t, 2), snapshotUpdates(1, 0, 1))
	set := func(name string) metadata.Step {
		return decodeStep(t, "", fmt.Sprintf(`{"action":"set-properties","updates":{%q:"yes"}}`, name))
	}
	add := func(id, parent int64, sequence int) metadata.Step {
		return decodeStep(t, headIs(fmt.Sprint(parent)), snapshotUpdates(id, parent, sequence))
	}
	tag := func(name string, id int) metadata.Step {
		return decodeStep(t, "", fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":"branch","snapshot-id":%d}`, name, id))
	}
	rows := []struct {
		name  string
		steps []metadata.Step
		want  []metadata.Joining
		kinds map[int]moorage.Kind
	}{
		{name: "properties of their own", steps: []metadata.Step{set("a"), set("b"), set("c")},
			want: []metadata.Joining{metadata.Joined, metadata.Joined, metadata.Joined}},
		{name: "one property twice", steps: []metadata.Step{set("a"), set("a"), set("b")},
			want: []metadata.Joining{metadata.Joined, metadata.Apart, metadata.Joined}},
		{name: "appends to one head", steps: []metadata.Step{add(2, 1, 2), add(3, 1, 2), set("a")},
			want: []metadata.Joining{metadata.Joined, metadata.Refused, metadata.Joined}, kinds: map[int]moorage.Kind{1: moorage.KindCommitFailed}},
		{name: "an append on top of another", steps: []metadata.Step{add(2, 1, 2), add(3, 2, 3)},
			want: []metadata.Joining{metadata.Joined, metadata.Apart}},
		{name: "one append twice", steps: []metadata.Step{add(2, 1, 2), add(2, 1, 2)},
			want: []metadata.Joining{metadata.Joined, metadata.Apart}},
		{name: "a branch at a snapshot of the member before", steps: []metadata.Step{add(2, 1, 2), tag("b", 2)},
			want: []metadata.Joining{metadata.Joined, metadata.Joined}},
		{name: "a number that another took", steps: []metadata.Step{add(2, 1, 2),
			decodeStep(t, "", `{"action":"add-snapshot","snapshot":{"snapshot-id":9,"parent-snapshot-id":1,"sequence-number":2,"timestamp-ms":1700000000000,"manifest-list":"m","summary":{"operation":"append"}}}`), set("a")},
			want:  []metadata.Joining{metadata.Joined, metadata.Refused, metadata.Joined},
			kinds: map[int]moorage.Kind{1: moorage.KindCommitFailed}},
		{name: "half of one fails", steps: []metadata.Step{set("a"),
			decodeStep(t, "", `{"action":"set-properties","updates":{"half":"yes"}},{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":77}`), set("b")},
			want:  []metadata.Joining{metadata.Joined, metadata.Refused, metadata.Joined},
			kinds: map[int]moorage.Kind{1: moorage.KindValidation}},
		{name: "two snapshots on main in one request", steps: []metadata.Step{
			decodeStep(t, headIs("1"), snapshotUpdates(2, 1, 2)+","+snapshotUpdates(3, 2, 3)), set("a")},
			want: []metadata.Joining{metadata.Joined, metadata.Joined}},
		{name: "nothing but requirements", steps: []metadata.Step{decodeStep(t, headIs("1"), "")},
			want: []metadata.Joining{metadata.Joined}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(1)
			env.BaseLocation = "file:///base.metadata.json"
			chain, serial, joined := base.Chain(env), base, 0
			for i, step := range row.steps {
				if _, ok := metadata.Shares([]metadata.Step{step}); !ok {
					t.Fatalf("step %d does not share", i)
				}
				got, err := chain.Add(step)
				if got != row.want[i] {
					t.Fatalf("step %d: got %d, %v; want %d", i, got, err, row.want[i])
				}
				if got == metadata.Refused && moorage.KindOf(err) != row.kinds[i] {
					t.Errorf("step %d: refused with %v, want kind %v", i, err, row.kinds[i])
				}
				if got == metadata.Joined {
					joined++
					if serial, err = metadata.ApplySteps(serial, []metadata.Step{step}, env); err != nil {
						t.Fatal(err)
					}
				}
			}
			made, err := chain.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if made == base {
				if serial != base {
					t.Error("nothing changed, but one after the other they change something")
				}
				return
			}
			if got, want := len(made.MetadataLog()), len(base.MetadataLog())+1; got != want {
				t.Errorf("the metadata log has %d entries, want %d", got, want)
			}
			wantSameButLogs(t, made, serial)
			if again, err := metadata.Parse(made.Raw()); err != nil {
				t.Errorf("the version cannot be read: %v", err)
			} else if got, want := fmt.Sprint(again.Properties()), fmt.Sprint(made.Properties()); got != want {
				t.Errorf("read again it has the properties %s, want %s", got, want)
			}
		})
	}
}

// wantSameButLogs compares a version with the result of the same requests in separate versions.
func wantSameButLogs(t *testing.T, got, want *metadata.Document) {
	t.Helper()
	texts := func(d *metadata.Document) string {
		head, there := d.CurrentSnapshotID()
		log := regexp.MustCompile(`"snapshot-log":\[[^\]]*\]`).FindString(string(d.Raw()))
		var snapshots []metadata.Snapshot
		for s := range d.Snapshots() {
			snapshots = append(snapshots, s)
		}
		return fmt.Sprint(d.Properties(), head, there, snapshots, d.StatisticsFiles(), d.LastUpdatedMS(), log)
	}
	if texts(got) != texts(want) {
		t.Errorf("got %s, one after the other %s", texts(got), texts(want))
	}
}

// These requests cannot share a version with other requests.
func TestSharesNot(t *testing.T) {
	t.Parallel()
	for _, updates := range []string{
		`{"action":"set-properties","updates":{"write.metadata.path":"x"}}`,
		`{"action":"set-properties","updates":{"moorage.append-rebase":"on"}}`,
		`{"action":"remove-properties","removals":["format-version"]}`,
		`{"action":"set-properties","updates":{"encryption.key-id":"x"}}`,
		`{"action":"add-schema","schema":` + testSchema + `}`,
		`{"action":"set-location","location":"file:///x"}`,
		`{"action":"upgrade-format-version","format-version":3}`,
		`{"action":"remove-snapshots","snapshot-ids":[1]}`,
		`{"action":"remove-snapshot-ref","ref-name":"b"}`,
	} {
		if _, ok := metadata.Shares([]metadata.Step{decodeStep(t, "", updates)}); ok {
			t.Errorf("shares: %s", updates)
		}
	}
	if _, ok := metadata.Shares([]metadata.Step{decodeStep(t, `{"type":"assert-create"}`, "")}); ok {
		t.Error("a create shares")
	}
	one := decodeStep(t, "", `{"action":"set-properties","updates":{"a":"b"}}`)
	if _, ok := metadata.Shares([]metadata.Step{one, one}); ok {
		t.Error("several changes of one table share")
	}
	// The stated size of a step's additions is an upper bound, whatever escapes JSON needs.
	base := createTest(t, 2)
	long := strings.Repeat(`\u0001`, 1000)
	for _, updates := range []string{
		`{"action":"set-properties","updates":{"a":"b"}}`,
		`{"action":"set-properties","updates":{"` + long + `":"` + long + `"}}`,
		snapshotUpdates(1, 0, 1) + `,{"action":"set-snapshot-ref","ref-name":"` + long + `","type":"branch","snapshot-id":1}`,
	} {
		step := decodeStep(t, "", updates)
		bytes, ok := metadata.Shares([]metadata.Step{step})
		chain := base.Chain(testEnv(1))
		if _, err := chain.Add(step); err != nil || !ok {
			t.Fatal(ok, err)
		}
		made, err := chain.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if grown := len(made.Raw()) - len(base.Raw()); grown > bytes+512 {
			t.Errorf("a step says it adds %d bytes, and adds %d", bytes, grown)
		}
	}
}
