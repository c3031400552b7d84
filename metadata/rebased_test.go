package metadata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata"
)

// rebase puts an append on top of the chain, and adds it to the chain.
func rebase(t testing.TB, chain *metadata.Chain, a metadata.Append, list string) {
	t.Helper()
	onto, misfit := chain.Onto(a)
	if misfit != metadata.Fits {
		t.Fatalf("does not fit: %s", misfit)
	}
	if got, err := chain.Add(a.On(onto, list, 5)); got != metadata.Joined {
		t.Fatalf("got %d, %v", got, err)
	}
}

// finish returns the chain's new version. It checks the version's bytes and index.
func finish(t testing.TB, chain *metadata.Chain) *metadata.Document {
	t.Helper()
	d, err := chain.Finish()
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, d)
	return d
}

// snapshotText returns the JSON of the last snapshot.
func snapshotText(d *metadata.Document) string {
	last := ""
	for name, value := range mustCheck(d.Raw()).Members() {
		if string(name) == "snapshots" {
			for e := range value.Elements() {
				last = string(e.Bytes())
			}
		}
	}
	return last
}

// The written snapshot equals the sent one, byte for byte, except for members that depend on the
// head.
func TestAppendOn(t *testing.T) {
	t.Parallel()
	const seen = `"moorage.rebased":"1 23470ce432c5b9f8"` // of s3://b/sent.avro, as sha256sum has it
	rows := []struct {
		name    string
		version int
		with    replacing // in the append
		want    replacing // replaced in the sent snapshot to get the written one
	}{
		{name: "version 2", version: 2, want: replacing{
			`"parent-snapshot-id":1`, `"parent-snapshot-id":3`, `"sequence-number" : 2`, `"sequence-number" : 4`,
			`1699999999000`, `1700000000000`, `"s3:\/\/b\/sent.avro"`, `"s3://b/new.avro"`, `{"operation"`, `{` + seen + `,"operation"`,
			` "total-records":"10",`, ``, `"manifests-kept":"0"`, `"manifests-kept":"5"`}},
		{name: "version 3, made after the head", version: 3, with: replacing{`1699999999000`, `1700000000001`}, want: replacing{
			`"parent-snapshot-id":1`, `"parent-snapshot-id":3`, `"sequence-number" : 2`, `"sequence-number" : 4`,
			`"s3:\/\/b\/sent.avro"`, `"s3://b/new.avro"`, `{"operation"`, `{` + seen + `,"operation"`,
			` "total-records":"10",`, ``, `"manifests-kept":"0"`, `"manifests-kept":"5"`, `"first-row-id":0`, `"first-row-id":40`}},
		{name: "nothing that it could do without", version: 2,
			with: replacing{`"parent-snapshot-id":1,`, ``, `"ref":"main","snapshot-id":1`, `"ref":"main"`, `"sequence-number" : 2,`, ``,
				`"manifests-kept":"0",`, ``, ` "total-records":"10",`, ``, `1699999999000`, `1700000000000`},
			want: replacing{`{ "snapshot-id"`, `{"parent-snapshot-id":3,"sequence-number":4, "snapshot-id"`,
				`"s3:\/\/b\/sent.avro"`, `"s3://b/new.avro"`, `{"operation"`, `{` + strings.Replace(seen, "1 ", "none ", 1) + `,"operation"`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			chain := rebaseBase(t, row.version).Chain(testEnv(1))
			rebase(t, chain, sentAppend(t, row.with), "s3://b/new.avro")
			d := finish(t, chain)
			want := row.want.in(t, row.with.in(t, sentSnapshot, sentRequirements)[0])[0]
			if got := snapshotText(d); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
			if head, _ := d.CurrentSnapshotID(); head != 9 {
				t.Errorf("the head is %d", head)
			}
			if got := tableOf(t, d); got.LastSequenceNumber != 4 || row.version == 3 && got.NextRowID != 50 {
				t.Errorf("the last number is %d, the next row %d", got.LastSequenceNumber, got.NextRowID)
			}
		})
	}
}

// The head may move before the new manifest list is written. In that case the step fails like every
// commit that comes second.
func TestAppendOnMovedHead(t *testing.T) {
	t.Parallel()
	base, a := rebaseBase(t, 2), sentAppend(t, nil)
	onto, _ := base.Chain(testEnv(1)).Onto(a)
	step := a.On(onto, "s3://b/new.avro", 5)
	if _, again := step.Append(); again {
		t.Error("its step is an append that could be moved once more")
	}
	moved := applyTest(t, base, snapshotUpdates(4, 3, 4))
	if got, err := moved.Chain(testEnv(1)).Add(step); got != metadata.Refused || moorage.KindOf(err) != stale {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := base.Chain(testEnv(1)).Add(step); got != metadata.Joined {
		t.Errorf("where it has not moved: got %d, %v", got, err)
	}
}

// Totals are the head's totals plus the append's additions and removals, as Java counts.
func TestRebasedTotals(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		head string // in the head's summary
		sent string // in the append's
		want string // in the written summary
	}{
		{name: "added", head: `"total-records":"100"`, sent: `"added-records":"10","total-records":"10"`, want: `"added-records":"10","total-records":"110"`},
		{name: "removed", head: `"total-records":"100"`, sent: `"added-records":"10","deleted-records":"30","total-records":"1"`, want: `"added-records":"10","deleted-records":"30","total-records":"80"`},
		{name: "neither", head: `"total-records":"100"`, sent: `"total-records":"0"`, want: `"total-records":"100"`},
		{name: "a total that was not sent", head: `"total-records":"100"`, sent: `"added-records":"10"`, want: `"total-records":"110","added-records":"10"`},
		{name: "a client that does not count", head: `"total-records":"100"`, sent: `"a":"b"`, want: `"a":"b"`},
		{name: "a head without it", head: `"a":"b"`, sent: `"added-records":"10","total-records":"10"`, want: `"added-records":"10"`},
		{name: "a head that is no number", head: `"total-records":"many"`, sent: `"total-records":"10","added-records":"10"`, want: `"added-records":"10"`},
		{name: "a head that is empty", head: `"total-records":""`, sent: `"total-records":"10","added-records":"10"`, want: `"added-records":"10"`},
		{name: "a head below zero", head: `"total-records":"-1"`, sent: `"total-records":"10","added-records":"10"`, want: `"added-records":"10"`},
		{name: "a head with a sign", head: `"total-records":"+5"`, sent: `"total-records":"10","added-records":"10"`, want: `"total-records":"15","added-records":"10"`},
		{name: "added is no number", head: `"total-records":"5"`, sent: `"total-records":"10","added-records":"1.0"`, want: `"added-records":"1.0"`},
		{name: "added is empty", head: `"total-records":"5"`, sent: `"total-records":"10","added-records":""`, want: `"added-records":""`},
		{name: "removed is no number", head: `"total-records":"5"`, sent: `"total-records":"10","deleted-records":"x"`, want: `"deleted-records":"x"`},
		{name: "removed is not looked at", head: `"total-records":"5"`, sent: `"total-records":"10","added-records":"-6","deleted-records":"x"`, want: `"added-records":"-6","deleted-records":"x"`},
		{name: "removed does not mend it", head: `"total-records":"5"`, sent: `"total-records":"10","added-records":"-6","deleted-records":"-10"`, want: `"added-records":"-6","deleted-records":"-10"`},
		{name: "removed, and a total that was not sent", head: `"total-records":"100"`, sent: `"deleted-records":"30"`, want: `"total-records":"70","deleted-records":"30"`},
		{name: "more removed than there is", head: `"total-records":"5"`, sent: `"total-records":"10","deleted-records":"6"`, want: `"deleted-records":"6"`},
		{name: "all removed", head: `"total-records":"5"`, sent: `"total-records":"10","deleted-records":"5"`, want: `"total-records":"0","deleted-records":"5"`},
		{name: "beyond 64 bits", head: `"total-records":"9223372036854775807"`, sent: `"total-records":"10","added-records":"1"`, want: `"added-records":"1"`},
		{name: "a number beyond 64 bits", head: `"total-records":"9223372036854775808"`, sent: `"total-records":"10"`, want: ``},
		{name: "beyond 64 bits below", head: `"total-records":"0"`, sent: `"total-records":"10","deleted-records":"-9223372036854775808"`, want: `"deleted-records":"-9223372036854775808"`},
		{name: "each of its own", head: `"total-files-size":"1","total-data-files":"2","total-delete-files":"3","total-position-deletes":"4","total-equality-deletes":"5"`,
			sent: `"added-files-size":"10","removed-files-size":"1","added-data-files":"20","deleted-data-files":"1","added-delete-files":"30","removed-delete-files":"1","added-position-deletes":"40","removed-position-deletes":"1","added-equality-deletes":"50","removed-equality-deletes":"1","total-files-size":"0","total-data-files":"0","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0"`,
			want: `"added-files-size":"10","removed-files-size":"1","added-data-files":"20","deleted-data-files":"1","added-delete-files":"30","removed-delete-files":"1","added-position-deletes":"40","removed-position-deletes":"1","added-equality-deletes":"50","removed-equality-deletes":"1","total-files-size":"10","total-data-files":"21","total-delete-files":"32","total-position-deletes":"43","total-equality-deletes":"54"`},
		{name: "all go, with white space", head: `"a":"b"`, sent: "\"total-records\" : \"1\" ,\n \"total-data-files\":\"1\"", want: ``},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			head := strings.Replace(snapshotUpdates(4, 3, 4), `"operation":"append"`, `"operation":"append",`+row.head, 1)
			chain := applyTest(t, rebaseBase(t, 2), head).Chain(testEnv(1))
			summary := sentSnapshot[strings.Index(sentSnapshot, `"added-data-files"`):strings.Index(sentSnapshot, `},"manifest-list"`)]
			rebase(t, chain, sentAppend(t, replacing{summary, row.sent}), "m")
			text := compact(t, snapshotText(finish(t, chain)))
			_, got, _ := strings.Cut(text, `"summary":{"moorage.rebased":"1 23470ce432c5b9f8",`)
			got, _, _ = strings.Cut(got, `},`)
			got = strings.Trim(strings.Replace(got, `"operation":"append"`, "", 1), ",")
			got = strings.ReplaceAll(got, ",,", ",")
			if got != row.want {
				t.Errorf("\ngot  %s\nwant %s", got, row.want)
			}
		})
	}
}

// A repeated request is recognised by what the client sent, wherever its snapshot was put.
func TestIsReplayOfRebased(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name  string
		after string // later updates
		sent  replacing
		with  replacing // replaced in the repeated request
		want  bool
	}{
		{name: "the same", want: true},
		{name: "another spelling of the list", with: replacing{`s3:\/\/b\/sent.avro`, `s3://b/sent.avro`}, want: true},
		{name: "others on top", after: snapshotUpdates(10, 9, 5), want: true},
		{name: "a client that saw no branch", sent: without, with: without, want: true},
		{name: "another list", with: replacing{`sent.avro`, `sent2.avro`}},
		{name: "another parent", with: replacing{`"parent-snapshot-id":1`, `"parent-snapshot-id":2`, `"ref":"main","snapshot-id":1`, `"ref":"main","snapshot-id":2`}},
		{name: "no parent", with: without},
		{name: "another snapshot", with: replacing{`"snapshot-id":9`, `"snapshot-id":8`}},
		{name: "rolled back since", after: setMainTo("3")},
		{name: "the list that was written", with: replacing{`s3:\/\/b\/sent.avro`, `s3://b/new.avro`}, want: true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			chain := rebaseBase(t, 2).Chain(testEnv(1))
			rebase(t, chain, sentAppend(t, row.sent), "s3://b/new.avro")
			d := finish(t, chain)
			if row.after != "" {
				d = applyTest(t, d, row.after)
			}
			updates := sentStep(t, row.with).Updates
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

// Appends whose clients saw the same head become one version, each on top of the previous one.
func TestChainOfRebased(t *testing.T) {
	t.Parallel()
	base := rebaseBase(t, 3)
	chain := base.Chain(testEnv(1))
	first := strings.ReplaceAll(snapshotUpdates(4, 3, 4), `"schema-id":0`, `"schema-id":0,"first-row-id":40,"added-rows":2`)
	if got, err := chain.Add(decodeStep(t, headIs("3"), first)); got != metadata.Joined {
		t.Fatalf("got %d, %v", got, err)
	}
	for id := 20; id < 23; id++ {
		sent := replacing{`"snapshot-id":9`, fmt.Sprintf(`"snapshot-id":%d`, id)}
		rebase(t, chain, sentAppend(t, sent), fmt.Sprintf("s3://b/%d.avro", id))
		if got, _ := chain.Add(sentStep(t, sent)); got != metadata.Apart {
			t.Errorf("sent again: got %d", got)
		}
		if got, _ := chain.Add(decodeStep(t, "", snapshotUpdates(50, 1, 99))); got != metadata.Apart {
			t.Errorf("an append that is not rebased: got %d", got)
		}
		if got, err := chain.Add(decodeStep(t, headIs("1"), "")); got != metadata.Refused { // is rebuilt without it
			t.Errorf("what fails: got %d, %v", got, err)
		}
	}
	onto, misfit := chain.Onto(sentAppend(t, nil))
	if misfit != metadata.Fits {
		t.Fatal(misfit)
	}
	var lists []string
	for _, s := range onto.Between {
		lists = append(lists, s.ManifestList)
	}
	want := []string{"s3://b/22.avro", "s3://b/21.avro", "s3://b/20.avro", "file:///tmp/t/metadata/snap-4.avro",
		"file:///tmp/t/metadata/snap-3.avro", "file:///tmp/t/metadata/snap-2.avro"}
	if !slices.Equal(lists, want) || onto.Seen.ID != 1 || onto.SequenceNumber != 8 || onto.FirstRowID != 72 || onto.FormatVersion != 3 {
		t.Errorf("got %+v", onto)
	}
	d := finish(t, chain)
	if got, want := len(d.MetadataLog()), len(base.MetadataLog())+1; got != want {
		t.Errorf("the metadata log has %d entries, want %d", got, want)
	}
	logged := tableOf(t, d).SnapshotLog
	if got, want := fmt.Sprint(logged[len(logged)-4:]), "[{4} {20} {21} {22}]"; got != want {
		t.Errorf("the snapshot log ends with %s, want %s", got, want)
	}
}

// If a request sets a branch to an earlier snapshot, an append to the branch does not join the same
// version. Otherwise the answer to that request would not show its effect.
func TestChainOfRebasedAfterRollback(t *testing.T) {
	t.Parallel()
	for _, setup := range []string{setMainTo("2"), oneAdded + `,` + setMainTo("4") + `,` + setMainTo("2")} {
		chain := rebaseBase(t, 2).Chain(testEnv(1))
		if got, err := chain.Add(decodeStep(t, "", setup)); got != metadata.Joined {
			t.Fatalf("got %d, %v", got, err)
		}
		a := sentAppend(t, nil)
		onto, misfit := chain.Onto(a)
		if misfit != metadata.Fits {
			t.Fatal(misfit)
		}
		if got, err := chain.Add(a.On(onto, "m", 1)); got != metadata.Apart {
			t.Errorf("after %s: got %d, %v", setup, got, err)
		}
	}
}
