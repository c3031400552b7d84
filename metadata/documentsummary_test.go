package metadata_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage/metadata"
)

// factsDocument returns a table with the given number of snapshots.
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

func TestSummary(t *testing.T) {
	t.Parallel()
	d := factsDocument(t, 7)
	want := metadata.Summary{
		Format: 2, Snapshots: 7, Refs: 1, Columns: 1, Versions: metadata.Unsaid, At: 1_760_000_900_000,
		FirstMS: 1_760_000_000_000, Seq: 7, Rows: 1000, Files: 7, Deletes: 4, Bytes: 40960, Snapshot: 7, Operation: "append",
	}
	if got := d.Summary(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	empty := applyTest(t, factsDocument(t, 1), `{"action":"remove-snapshots","snapshot-ids":[1]}`).Summary()
	empty.At = 0 // depends on the test's clock
	const unsaid = metadata.Unsaid
	want = metadata.Summary{
		Format: 2, Columns: 1, Versions: unsaid, FirstMS: unsaid, Seq: 1, Rows: unsaid, Files: unsaid, Deletes: unsaid,
		Bytes: unsaid, Snapshot: unsaid,
	}
	if empty != want {
		t.Errorf("of an empty table: got %+v, want %+v", empty, want)
	}
	for _, row := range []struct {
		change string
		want   func(s metadata.Summary) (got, want any)
	}{
		{`{"action":"set-properties","updates":{"comment":"` + strings.Repeat("é", 100) + `"}}`,
			func(s metadata.Summary) (any, any) { return s.Comment, strings.Repeat("é", 60) }},
		{`{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"x","required":true,"type":"long"},
			{"id":2,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":3,"name":"y","required":false,"type":"int"}]}}]}},
			{"action":"set-current-schema","schema-id":1}`, func(s metadata.Summary) (any, any) { return s.Columns, int64(2) }},
		{`{"action":"upgrade-format-version","format-version":3}`, func(s metadata.Summary) (any, any) { return s.Format, int64(3) }},
		{`{"action":"add-snapshot","snapshot":{"snapshot-id":8,"parent-snapshot-id":7,"sequence-number":8,"timestamp-ms":1700000000001,
			"manifest-list":"s3://b/8.avro","summary":{"operation":"overwrite","engine-name":"spark","engine-version":"3.5.1"}}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8}`,
			func(s metadata.Summary) (any, any) {
				return s.Operation + " by " + s.Engine, "overwrite by spark 3.5.1"
			}},
	} {
		if got, want := row.want(applyTest(t, d, row.change).Summary()); got != want {
			t.Errorf("%s: got %v, want %v", row.change, got, want)
		}
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
		rules := applyTest(t, d, change).Summary().Rules
		if other, again := seen[rules]; again {
			t.Errorf("%s has the rules of %s", change, other)
		}
		seen[rules] = change
	}
	for _, change := range []string{
		`{"action":"set-properties","updates":{"comment":"x"}}`, `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":7}`,
	} {
		if rules := applyTest(t, d, change).Summary().Rules; rules != "" {
			t.Errorf("%s changes the rules to %q", change, rules)
		}
	}
}

// BenchmarkSummary: the budget is 5 µs, compared with more than 100 µs for a commit.
func BenchmarkSummary(b *testing.B) {
	for _, count := range []int{1, 1000} {
		d := factsDocument(b, count)
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d.Summary()
			}
		})
	}
}
