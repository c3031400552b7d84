package metadata_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage/metadata"
)

// factsDocument is a table of so many snapshots.
func factsDocument(tb testing.TB, count int) *metadata.Document {
	tb.Helper()
	var snapshots strings.Builder
	for i := range count {
		if i > 0 {
			snapshots.WriteByte(',')
		}
		fmt.Fprintf(&snapshots, `{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"s3://b/%d.avro","schema-id":0,`+
			`"summary":{"operation":"append","added-data-files":"1","added-records":"100","added-files-size":"4096","total-records":"1000",`+
			`"total-files-size":"40960","total-data-files":"%d","total-delete-files":"4","total-position-deletes":"0","total-equality-deletes":"0"}}`,
			i+1, i+1, 1_760_000_000_000+i, i, i+1)
	}
	raw := fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":%d,
		"last-updated-ms":1760000900000,"last-column-id":1,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]}],
		"current-schema-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"last-partition-id":999,
		"sort-orders":[{"order-id":0,"fields":[]}],"default-sort-order-id":0,"properties":{"owner":"ann","write.format.default":"parquet"},
		"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%d,"type":"branch"}},"snapshots":[%s]}`, count, count, count, &snapshots)
	document, err := metadata.Parse([]byte(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return document
}

func TestFacts(t *testing.T) {
	t.Parallel()
	d := factsDocument(t, 7)
	want := metadata.Facts{Snapshots: 7, FirstMS: 1_760_000_000_000, Refs: 1, Sequence: 7, Operation: "append", Files: 7, Deletes: 4, Bytes: 40960}
	if got := d.Facts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	empty := applyTest(t, factsDocument(t, 1), `{"action":"remove-snapshots","snapshot-ids":[1]}`)
	if got, want := empty.Facts(), (metadata.Facts{Sequence: 1, Files: metadata.Unsaid, Deletes: metadata.Unsaid, Bytes: metadata.Unsaid}); got != want {
		t.Errorf("of an empty table: got %+v, want %+v", got, want)
	}
	seen := map[string]string{"": "nothing"}
	for _, change := range []string{
		`{"action":"set-properties","updates":{"gc.enabled":"false"}}`,
		`{"action":"set-properties","updates":{"gc.enabled":"true"}}`,
		`{"action":"set-properties","updates":{"history.expire.max-snapshot-age-ms":"1"}}`,
		`{"action":"set-properties","updates":{"moorage.maintenance.hold":"true"}}`,
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7,"min-snapshots-to-keep":3}`,
		`{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":7,"max-ref-age-ms":3}`,
	} {
		rules := applyTest(t, d, change).Facts().Rules
		if other, again := seen[rules]; again {
			t.Errorf("%s has the rules of %s", change, other)
		}
		seen[rules] = change
	}
	for _, change := range []string{
		`{"action":"set-properties","updates":{"comment":"x"}}`, `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":7}`,
	} {
		if rules := applyTest(t, d, change).Facts().Rules; rules != "" {
			t.Errorf("%s changes the rules to %q", change, rules)
		}
	}
}

// BenchmarkFacts: the budget is 5 µs beside a commit of more than 100.
func BenchmarkFacts(b *testing.B) {
	for _, count := range []int{1, 1000} {
		d := factsDocument(b, count)
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.Facts()
			}
		})
	}
}
