package metadata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/metadata"
)

// The append that these tests send, on top of snapshot 1 of main: see sentStep.
const (
	sentRequirements = `{"type":"assert-table-uuid","uuid":"` + testUUID + `"},
		{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1},{"type":"assert-ref-snapshot-id","ref":"gone"}`
	sentSnapshot = `{ "snapshot-id":9,"parent-snapshot-id":1,"sequence-number" : 2,"timestamp-ms":1699999999000,"summary":{"operation":"append",` +
		`"added-data-files":"2","added-records":"10", "total-records":"10","manifests-created":"1","manifests-kept":"0","engine":"caf\u00e9"},` +
		`"manifest-list":"s3:\/\/b\/sent.avro","schema-id":0,"first-row-id":0,"added-rows":10,"x":0.0}`
	sentRef     = `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":9}`
	sentUpdates = `{"action":"add-snapshot","snapshot":` + sentSnapshot + `},` + sentRef
)

// replacing holds pairs of texts: a part of a text, and its replacement.
type replacing []string

func (r replacing) in(t testing.TB, texts ...string) []string {
	t.Helper()
	for i := 0; i+1 < len(r); i += 2 {
		if !strings.Contains(strings.Join(texts, "\n"), r[i]) {
			t.Fatalf("there is no %s", r[i])
		}
	}
	for i := range texts {
		texts[i] = strings.NewReplacer(r...).Replace(texts[i])
	}
	return texts
}

// sentStep returns the append with some parts replaced.
func sentStep(t testing.TB, with replacing) metadata.Step {
	t.Helper()
	texts := with.in(t, sentRequirements, sentUpdates)
	return decodeStep(t, texts[0], texts[1])
}

func sentAppend(t testing.TB, with replacing) metadata.Append {
	t.Helper()
	a, ok := sentStep(t, with).Append()
	if !ok {
		t.Fatalf("with %q it is no append", with)
	}
	return a
}

// without is the append of a client that saw no branch.
var without = replacing{`"parent-snapshot-id":1,`, ``, `"ref":"main","snapshot-id":1`, `"ref":"main"`}

func TestStepAppend(t *testing.T) {
	t.Parallel()
	summary := func(key string) replacing { return replacing{`"engine":`, `"` + key + `":"1","engine":`} }
	rows := []struct {
		name string
		with replacing
		want bool
	}{
		{name: "as it is sent", want: true},
		{name: "a branch that was not there", with: without, want: true},
		{name: "another branch", with: replacing{`"ref":"main"`, `"ref":"b"`, `"ref-name":"main"`, `"ref-name":"b"`}, want: true},
		{name: "retention", with: replacing{`"type":"branch"`, `"type":"branch","max-ref-age-ms":5`}, want: true},
		{name: "no rows", with: replacing{`"first-row-id":0,"added-rows":10,`, ``}, want: true},
		{name: "no key", with: replacing{`"x":0.0`, `"key-id":null`}, want: true},
		{name: "one update", with: replacing{`,` + sentRef, ``}},
		{name: "three updates", with: replacing{sentRef, sentRef + `,{"action":"set-properties","updates":{"a":"b"}}`}},
		{name: "two snapshots", with: replacing{`,` + sentRef, `,` + bareSnapshot(`"manifest-list":"m"`)}},
		{name: "another order", with: replacing{sentUpdates, sentRef + `,{"action":"add-snapshot","snapshot":` + sentSnapshot + `}`}},
		{name: "another update first", with: replacing{sentUpdates, `{"action":"set-properties","updates":{"a":"b"}},` + sentRef}},
		{name: "a tag", with: replacing{`"type":"branch"`, `"type":"tag"`}},
		{name: "the ref at another snapshot", with: replacing{`"type":"branch","snapshot-id":9`, `"type":"branch","snapshot-id":8`}},
		{name: "no requirement", with: replacing{sentRequirements, ``}},
		{name: "a requirement of another ref", with: replacing{`"ref":"main"`, `"ref":"b"`}},
		{name: "two requirements of the ref", with: replacing{`"ref":"gone"`, `"ref":"main","snapshot-id":1`}},
		{name: "a new table", with: replacing{sentRequirements, sentRequirements + `,{"type":"assert-create"}`}},
		{name: "another parent than required", with: replacing{`"parent-snapshot-id":1`, `"parent-snapshot-id":2`}},
		{name: "a parent, but no branch", with: replacing{`"ref":"main","snapshot-id":1`, `"ref":"main"`}},
		{name: "a branch, but no parent", with: replacing{`"parent-snapshot-id":1,`, ``}},
		{name: "a key", with: replacing{`"x":0.0`, `"key-id":"k"`}},
		{name: "manifests instead of a list", with: replacing{`"manifest-list":"s3:\/\/b\/sent.avro"`, `"manifests":["m"]`}},
		{name: "manifests beside a list", with: replacing{`"x":0.0`, `"manifests":[]`}},
		{name: "no schema", with: replacing{`"schema-id":0,`, ``}},
		{name: "a null for a schema", with: replacing{`"schema-id":0`, `"schema-id":null`}},
		{name: "no summary", with: replacing{`"summary":{`, `"other":{`}},
		{name: "no operation", with: replacing{`"operation":"append",`, ``}},
		{name: "an overwrite", with: replacing{`"append"`, `"overwrite"`}},
		{name: "an operation in capitals", with: replacing{`"append"`, `"APPEND"`}},
		{name: "Kafka Connect", with: summary("kafka.connect.offsets.topic")},
		{name: "Flink", with: summary("flink.max-committed-checkpoint-id")},
		{name: "Flink, spelled with an escape", with: summary(`\u0066link.job-id`)},
		{name: "Spark streaming", with: summary("spark.sql.streaming.epochId")},
		{name: "Spark, not streaming", with: summary("spark.app.id"), want: true},
		{name: "a materialized view", with: summary("dependsOnTables")},
		{name: "staged", with: summary("wap.id")},
		{name: "a key that only begins so", with: summary("wap.id2"), want: true},
		{name: "published", with: summary("published-wap-id")},
		{name: "picked", with: summary("source-snapshot-id")},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, ok := sentStep(t, row.with).Append(); ok != row.want {
				t.Errorf("got %t", ok)
			}
		})
	}
	a := sentAppend(t, nil)
	got := fmt.Sprint(a.Branch, a.Snapshot, a.SchemaID, a.HasRows, a.FirstRowID, a.AddedRows)
	if want := `main{9 1 true 2 1699999999000 s3://b/sent.avro [] false} 0 true 0 10`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// rebaseBase returns a table with snapshots 1, 2 and 3 on main.
func rebaseBase(t testing.TB, version int) *metadata.Document {
	t.Helper()
	all := three
	if version == 3 {
		all = strings.ReplaceAll(all, `"schema-id":0`, `"schema-id":0,"first-row-id":40,"added-rows":0`)
	}
	return applyTest(t, createTest(t, version), all)
}

// many returns updates that add snapshots 101, 102, and so on, on top of a parent.
func many(parent int64, count int) string {
	var all []string
	for i := range int64(count) {
		all = append(all, snapshotUpdates(101+i, parent, 4+int(i)))
		parent = 101 + i
	}
	return strings.Join(all, ",")
}

func TestChainOnto(t *testing.T) {
	t.Parallel()
	const remove1, remove2 = `{"action":"remove-snapshots","snapshot-ids":[1]}`, `{"action":"remove-snapshots","snapshot-ids":[2]}`
	added := func(members string) string {
		return `{"action":"add-snapshot","snapshot":{"snapshot-id":4,"parent-snapshot-id":3,"sequence-number":4,"summary":{"operation":"append"},` + members + `}},` + setMainTo("4")
	}
	rows := []struct {
		name    string
		version int           // of the table; 0 means 2
		setup   string        // earlier updates of the table
		now     time.Duration // time that has passed
		with    replacing     // replaced in the append
		want    metadata.Misfit
		between []int64
	}{
		{name: "two since", between: []int64{3, 2}},
		{name: "none since", setup: setMainTo("1"), between: nil},
		{name: "another branch moved", setup: branchB + `,` + bareSnapshot(`"sequence-number":4,"manifest-list":"m"`), with: replacing{`"main"`, `"b"`, `:9`, `:99`}, between: nil},
		{name: "all since", with: without, between: []int64{3, 2, 1}},
		{name: "as many as may be", setup: many(3, 254), between: append(idsDown(354, 101), 3, 2)},
		{name: "one more", setup: many(3, 255), want: metadata.MisfitDistance},
		{name: "as many as may be, from the first on", setup: many(3, 253), with: without, between: append(idsDown(353, 101), 3, 2, 1)},
		{name: "one more than that", setup: many(3, 254), with: without, want: metadata.MisfitDistance},
		{name: "version 1", version: 1, setup: bareSnapshot(`"manifest-list":"m"`) + `,` + setMainTo("9"), with: replacing{`:9`, `:99`, `:1,`, `:9,`, `:1}`, `:9}`}, want: metadata.MisfitFormat},
		{name: "version 3", version: 3, between: []int64{3, 2}},
		{name: "version 3 without ids of rows", version: 3, with: replacing{`"first-row-id":0,"added-rows":10,`, ``}, want: metadata.MisfitFormat},
		{name: "too many rows", version: 3, with: replacing{`"added-rows":10`, `"added-rows":9223372036854775768`}, want: metadata.MisfitRows},
		{name: "as many rows as can be", version: 3, with: replacing{`"added-rows":10`, `"added-rows":9223372036854775767`}, between: []int64{3, 2}},
		{name: "the branch is gone", setup: removeMain, want: metadata.MisfitBranch},
		{name: "another kind of ref", setup: tagT, with: replacing{`"main"`, `"t"`}, want: metadata.MisfitBranch},
		{name: "its snapshot is there", setup: bareSnapshot(`"sequence-number":4,"manifest-list":"s3://b/sent.avro"`), want: metadata.MisfitRepeated},
		{name: "retention that the branch has", setup: setMainTo("3,\"max-ref-age-ms\":5"), with: replacing{`"type":"branch"`, `"type":"branch","max-ref-age-ms":5`}, between: []int64{3, 2}},
		{name: "retention that came since", setup: setMainTo("3,\"max-ref-age-ms\":5"), want: metadata.MisfitRetention},
		{name: "a schema that came since", setup: addB, want: metadata.MisfitSchema},
		{name: "the schema that came since", setup: addB, with: replacing{`"schema-id":0`, `"schema-id":1`}, between: []int64{3, 2}},
		{name: "another table", with: replacing{testUUID, otherUUID}, want: metadata.MisfitRequirement},
		{name: "another ref that is there", setup: `{"action":"set-snapshot-ref","ref-name":"gone","type":"tag","snapshot-id":1}`, want: metadata.MisfitRequirement},
		{name: "what it saw is not an ancestor", setup: bareSnapshot(`"sequence-number":4,"manifest-list":"m"`), with: replacing{`:9`, `:99`, `:1,`, `:9,`, `:1}`, `:9}`}, want: metadata.MisfitParent},
		{name: "what it saw has expired", setup: remove1, want: metadata.MisfitParent},
		{name: "one since has expired", setup: remove2, want: metadata.MisfitParent},
		{name: "it saw none, and the first has expired", setup: remove1, with: without, want: metadata.MisfitParent},
		{name: "a table that was replaced", setup: removeMain + `,` + bareSnapshot(`"sequence-number":4,"manifest-list":"m"`) + `,` + setMainTo("9"), with: replacing{`:9`, `:99`}, want: metadata.MisfitParent},
		{name: "one without a list", setup: added(`"timestamp-ms":1700000000000,"manifests":["m"]`), want: metadata.MisfitList},
		{name: "one with an encrypted list", setup: added(`"timestamp-ms":1700000000000,"manifest-list":"m","key-id":"k"`), want: metadata.MisfitList},
		{name: "a head ahead of the clock", setup: added(`"timestamp-ms":1700000060000,"manifest-list":"m"`), now: -time.Millisecond, want: metadata.MisfitTime},
		{name: "ahead of the clock itself", with: replacing{`1699999999000`, `1700000060001`}, want: metadata.MisfitTime},
		{name: "a head ahead by a minute", setup: added(`"timestamp-ms":1700000060000,"manifest-list":"m"`), between: []int64{4, 3, 2}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			base := createTest(t, 1)
			if row.version != 1 {
				base = rebaseBase(t, max(row.version, 2))
			}
			if row.setup != "" {
				base = applyTest(t, base, row.setup)
			}
			env := testEnv(1)
			env.Now = env.Now.Add(row.now)
			onto, misfit := base.Chain(env).Onto(sentAppend(t, row.with))
			if misfit != row.want {
				t.Fatalf("got %q, want %q", misfit, row.want)
			}
			if misfit != metadata.Fits {
				return
			}
			var between []int64
			for _, s := range onto.Between {
				between = append(between, s.ID)
			}
			if !slices.Equal(between, row.between) {
				t.Errorf("got %v between, want %v", between, row.between)
			}
			if len(between) > 0 && onto.Head.ID != between[0] {
				t.Errorf("the head is %d", onto.Head.ID)
			}
			if !onto.HasSpec(0) || onto.HasSpec(1) {
				t.Error("got other specs than the table's")
			}
		})
	}
}

// idsDown returns the numbers from from down to to.
func idsDown(from, to int64) (ids []int64) {
	for ; from >= to; from-- {
		ids = append(ids, from)
	}
	return ids
}

// After a rollback, the last entry of the log of main is later than the head. An append that was
// made long before that entry cannot follow it.
func TestOntoAfterRollback(t *testing.T) {
	t.Parallel()
	later := testEnv(1)
	later.Now = later.Now.Add(2 * time.Minute)
	base := rebaseBase(t, 2)
	rolledBack, err := base.Apply(decodeTest(t, setMainTo("2")), later)
	if err != nil {
		t.Fatal(err)
	}
	inChain := base.Chain(later)
	if got, err := inChain.Add(decodeStep(t, "", setMainTo("2"))); got != metadata.Joined {
		t.Fatalf("got %d, %v", got, err)
	}
	for _, chain := range []*metadata.Chain{rolledBack.Chain(later), inChain} {
		if _, misfit := chain.Onto(sentAppend(t, nil)); misfit != metadata.MisfitTime {
			t.Errorf("got %q", misfit)
		}
		if _, misfit := chain.Onto(sentAppend(t, replacing{"1699999999000", "1700000060000"})); misfit != metadata.Fits {
			t.Errorf("made since: got %q", misfit)
		}
	}
}
