package metadata_test

import (
	"fmt"
	"testing"

	"moorage/metadata"
)

// An append that fits is applied, whatever its form. The document is correct. If the append is
// repeated in any form, IsReplay recognises it.
func FuzzRebase(f *testing.F) {
	f.Add(sentSnapshot, true)
	f.Add(without.in(f, sentSnapshot, sentRequirements)[0], false)
	f.Add(`{"snapshot-id":9,"timestamp-ms":0,"summary":{"operation":"append"},"manifest-list":"","schema-id":0}`, false)
	f.Add("{\"summary\"\t:{ \"total-records\" :\"9\" , \"operation\":\"append\"\n},\"manifest-list\":\"\\ud83d\\ude00\",\"schema-id\":0,"+
		`"snapshot-id":9,"timestamp-ms":-9223372036854775808,"parent-snapshot-id":1,"first-row-id":9223372036854775807,"added-rows":0}`, true)
	bases := []*metadata.Document{rebaseBase(f, 2), rebaseBase(f, 3)}
	f.Fuzz(func(t *testing.T, snapshot string, saw bool) {
		updates, err := checked(metadata.DecodeUpdates, `[{"action":"add-snapshot","snapshot":`+snapshot+`},`+sentRef+`]`)
		if err != nil {
			return
		}
		requirement := `{"type":"assert-ref-snapshot-id","ref":"main"}`
		if saw {
			requirement = headIs("1")
		}
		a, ok := metadata.Step{Requirements: decodeStep(t, requirement, "").Requirements, Updates: updates}.Append()
		if !ok {
			return
		}
		for _, base := range bases {
			chain := base.Chain(testEnv(1))
			onto, misfit := chain.Onto(a)
			if misfit != metadata.Fits {
				continue
			}
			if got, err := chain.Add(a.On(onto, "s3://b/new \"\\\u00e9.avro", 1)); got != metadata.Joined {
				t.Fatalf("got %d, %v", got, err)
			}
			d := finish(t, chain)
			if !d.IsReplay(updates) {
				t.Errorf("is not known again: %s", snapshotText(d))
			}
			last := ""
			for s := range d.Snapshots() {
				last = fmt.Sprint(s.ID, s.ParentID, s.SequenceNumber, s.ManifestList)
			}
			if want := fmt.Sprint(int64(9), int64(3), int64(4), "s3://b/new \"\\\u00e9.avro"); last != want {
				t.Errorf("got %s, want %s", last, want)
			}
		}
	})
}
