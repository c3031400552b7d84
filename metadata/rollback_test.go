package metadata_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/metadata"
)

// applyRollback commits r on d, as a client would.
func applyRollback(t *testing.T, d *metadata.Document, r metadata.Rollback) (*metadata.Document, error) {
	t.Helper()
	requirements, err := checked(metadata.DecodeRequirements, string(r.Requirements))
	if err != nil {
		t.Fatalf("%s: %v", r.Requirements, err)
	}
	updates, err := checked(metadata.DecodeUpdates, string(r.Updates))
	if err != nil {
		t.Fatalf("%s: %v", r.Updates, err)
	}
	if err := metadata.Check(d, requirements); err != nil {
		t.Fatalf("%s: %v", r.Requirements, err)
	}
	return d.Apply(updates, testEnv(1))
}

// TestRollbackOfRandomHistories: after a rollback of all parts, only snapshots, other refs,
// location and format version differ from the earlier version. A second rollback undoes the first.
func TestRollbackOfRandomHistories(t *testing.T) {
	t.Parallel()
	const seed = 12
	g := &generator{rand: rand.New(rand.NewPCG(seed, seed)), t: t, d: createTest(t, 2)}
	versions := []*metadata.Document{g.d}
	for len(versions) < 300 {
		if next, err := g.d.Apply(decodeTest(t, g.request()), testEnv(1)); err == nil && next != g.d {
			g.d = next
			versions = append(versions, next)
		}
	}
	var done, expired, refused int
	for range 600 {
		later := g.rand.IntN(len(versions))
		now, then := versions[later], versions[g.rand.IntN(later+1)]
		r, err := metadata.RollbackToVersion(now, then, "main", metadata.RollbackAll)
		if moorage.KindOf(err) == moorage.KindCommitFailed {
			expired++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := applyRollback(t, now, r)
		if err != nil {
			refused++ // a schema that the table no longer allows
			if !strings.Contains(string(r.Updates), "add-schema") && !strings.Contains(string(r.Updates), "add-spec") {
				t.Fatalf("%s: %v", r.Updates, err)
			}
			continue
		}
		d := diffTest(t, then, back)
		if d.Schema != nil || d.PartitionSpec != nil || d.SortOrder != nil || d.Properties != nil {
			t.Fatalf("after %s: %s", r.Updates, jsonOf(t, d))
		}
		if was, is := mainOf(then), mainOf(back); was != is {
			t.Fatalf("main is at %d, want %d", is, was)
		}
		undo, err := metadata.RollbackToVersion(back, now, "main", metadata.RollbackAll)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := applyRollback(t, back, undo); err == nil && mainOf(again) != mainOf(now) {
			t.Fatal("a rollback of the rollback does not bring main back")
		}
		done++
	}
	t.Logf("%d rolled back, %d snapshots had expired, %d schemas or specs were refused", done, expired, refused)
	if done < 200 || expired == 0 {
		t.Error("the histories show too little")
	}
}

func mainOf(d *metadata.Document) int64 {
	id, _ := d.CurrentSnapshotID()
	return id
}

// TestRollbackToSnapshot: a branch goes back only to its ancestors, unless the caller permits any
// snapshot. The error names an expired snapshot.
func TestRollbackToSnapshot(t *testing.T) {
	t.Parallel()
	d := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1))
	d = applyTest(t, applyTest(t, d, snapshotUpdates(102, 101, 2)), snapshotUpdates(103, 102, 3))
	d = applyTest(t, d, `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":102,"min-snapshots-to-keep":5},
		{"action":"set-snapshot-ref","ref-name":"ahead","type":"branch","snapshot-id":103}`)
	r, err := metadata.RollbackToSnapshot(d, "main", 101, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"action":"set-snapshot-ref","min-snapshots-to-keep":5,"ref-name":"main","snapshot-id":101,"type":"branch"}]`
	if string(r.Updates) != want {
		t.Errorf("updates are %s", r.Updates)
	}
	if back, err := applyRollback(t, d, r); err != nil || mainOf(back) != 101 {
		t.Errorf("not back: %v", err)
	}
	for _, c := range []struct {
		name string
		id   int64
		any  bool
		kind moorage.Kind
		text string
	}{
		{"main", 103, false, moorage.KindBadRequest, "Snapshot 103 is not an ancestor of main, which is at 102"},
		{"main", 99, true, moorage.KindCommitFailed, "Snapshot 99 of main has expired"},
		{"gone", 101, false, moorage.KindBadRequest, "The table has no branch or tag gone"},
	} {
		if _, err := metadata.RollbackToSnapshot(d, c.name, c.id, c.any); moorage.KindOf(err) != c.kind ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s to %d: %v", c.name, c.id, err)
		}
	}
	if r, err = metadata.RollbackToSnapshot(d, "main", 103, true); err != nil || r.IsEmpty() {
		t.Errorf("to an unrelated snapshot: %s, %v", r.Updates, err)
	}
	if r, err = metadata.RollbackToSnapshot(d, "main", 102, false); err != nil || !r.IsEmpty() {
		t.Errorf("to the present one: %s, %v", r.Updates, err)
	}
}

// TestRollbackWarns: if only a ref is rolled back, the warnings name the parts that are not
// restored.
func TestRollbackWarns(t *testing.T) {
	t.Parallel()
	then := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1))
	now := applyTest(t, then, snapshotUpdates(102, 101, 2)+`,{"action":"set-properties","updates":{"a":"b"}}`)
	r, err := metadata.RollbackToVersion(now, then, "main", metadata.RollbackRefs)
	if err != nil || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "The properties have changed since.") {
		t.Errorf("warnings are %q, %v", r.Warnings, err)
	}
	empty, err := metadata.RollbackToVersion(now, createTest(t, 2), "main", metadata.RollbackRefs)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := applyRollback(t, now, empty); err != nil || mainOf(back) != 0 && mainOf(back) != -1 {
		t.Errorf("to the empty table: main is at %d, %v", mainOf(back), err)
	}
	if _, err := metadata.RollbackToVersion(now, then, "audit", metadata.RollbackRefs); moorage.KindOf(err) != moorage.KindBadRequest {
		t.Errorf("of a ref that did not exist: %v", err)
	}
}

// TestSnapshotAt: the head of main at a time comes from the snapshot log.
func TestSnapshotAt(t *testing.T) {
	t.Parallel()
	d := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1))
	if _, found := d.SnapshotAt(time.UnixMilli(testNowMS - 1)); found {
		t.Error("found a head before the first")
	}
	if id, found := d.SnapshotAt(time.UnixMilli(testNowMS)); !found || id != 101 {
		t.Errorf("found %d, %t", id, found)
	}
}
