package metadata_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"moorage/metadata"
)

// benchSnapshot returns a snapshot as written by Spark, 0.9 KB.
func benchSnapshot(id, parent int64, sequence int, timestampMS int64) string {
	parentMember := ""
	if parent != 0 {
		parentMember = fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	return fmt.Sprintf(`{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,"summary":{`+
		`"operation":"append","spark.app.id":"application_1693999999999_0042","added-data-files":"8",`+
		`"added-records":"1048576","added-files-size":"268435456","changed-partition-count":"4",`+
		`"total-records":"%d","total-files-size":"%d","total-data-files":"%d","total-delete-files":"0",`+
		`"total-position-deletes":"0","total-equality-deletes":"0","engine-version":"3.5.3","app-id":`+
		`"application_1693999999999_0042","engine-name":"spark","iceberg-version":"Apache Iceberg 1.10.0 `+
		`(commit 2114bf631e49af532d66e2ce148ee49dd1dd1f1f)"},"manifest-list":`+
		`"s3://warehouse/analytics/events/metadata/snap-%d-1-6c1a4d6e-0f6a-4b6e-8d44-0d9c4a9e7f01.avro","schema-id":0}`,
		sequence, id, parentMember, timestampMS, int64(sequence)*1048576, int64(sequence)*268435456, sequence*8, id)
}

const benchFirstID = 3_051_729_675_574_597_000

// benchTable returns a v2 document with the given numbers of snapshots and columns, and a metadata
// log of 100 entries.
func benchTable(tb testing.TB, snapshotCount, columns int) []byte {
	tb.Helper()
	var b bytes.Buffer
	start := int64(testNowMS - 86_400_000)
	fmt.Fprintf(&b, `{"format-version":2,"table-uuid":%q,"location":"s3://warehouse/analytics/events",`+
		`"last-sequence-number":%d,"last-updated-ms":%d,"last-column-id":%d,"current-schema-id":0,"schemas":[`+
		`{"type":"struct","schema-id":0,"fields":[`, testUUID, snapshotCount, start+int64(snapshotCount), columns)
	for i := 1; i <= columns; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"column_%d","required":false,"type":"string","doc":"the column %[1]d"}`, i, i)
	}
	fmt.Fprintf(&b, `]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,`+
		`"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"owner":"bench"},`)
	last := benchFirstID + int64(snapshotCount)
	fmt.Fprintf(&b, `"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%[1]d,"type":"branch"}},"snapshots":[`, last)
	for i := 1; i <= snapshotCount; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		id, parent := benchFirstID+int64(i), benchFirstID+int64(i-1)
		if i == 1 {
			parent = 0
		}
		b.WriteString(benchSnapshot(id, parent, i, start+int64(i)))
	}
	b.WriteString(`],"statistics":[],"partition-statistics":[],"snapshot-log":[`)
	for i := 1; i <= snapshotCount; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"timestamp-ms":%d,"snapshot-id":%d}`, start+int64(i), benchFirstID+int64(i))
	}
	b.WriteString(`],"metadata-log":[`)
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"timestamp-ms":%d,"metadata-file":"s3://warehouse/analytics/events/metadata/`+
			`%05d-6c1a4d6e-0f6a-4b6e-8d44-0d9c4a9e7f01.metadata.json"}`, start, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// benchUpdates returns an append to benchTable.
func benchUpdates(snapshotCount int) []byte {
	id, parent := benchFirstID+int64(snapshotCount)+1, benchFirstID+int64(snapshotCount)
	return fmt.Appendf(nil, `[{"action":"add-snapshot","snapshot":%s},`+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
		benchSnapshot(id, parent, snapshotCount+1, testNowMS), id)
}

var benchSizes = []int{10, 100, 1_000, 10_000}

func benchEnv() metadata.Env {
	return metadata.Env{Now: time.UnixMilli(testNowMS), BaseLocation: "s3://warehouse/analytics/events/metadata/00100-x.metadata.json"}
}

// holdHeap allocates as much memory as the documents of a small server. With an empty heap, the
// collector would run every few commits, and the benchmark would measure how the kernel hands out
// pages.
func holdHeap(b *testing.B) {
	held := bytes.Repeat([]byte{1}, 64<<20)
	b.Cleanup(func() { runtime.KeepAlive(held) })
}

// BenchmarkCommit measures an append to a table whose document is cached: the cost of a commit
// without storage and the store. The index of the result is derived, so the next commit costs the
// same. The case copy is the lower bound, a copy of the bytes. iceberg-go reads, changes and writes
// the whole document.
func BenchmarkCommit(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("splice/snapshots=%d", n), func(b *testing.B) {
			d, err := metadata.Parse(benchTable(b, n, 50))
			if err != nil {
				b.Fatal(err)
			}
			holdHeap(b)
			body := benchUpdates(n)
			b.SetBytes(int64(len(d.Raw())))
			b.ReportAllocs()
			for b.Loop() {
				updates, err := checked(metadata.DecodeUpdates, body)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.Apply(updates, benchEnv()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("copy/snapshots=%d", n), func(b *testing.B) {
			raw := benchTable(b, n, 50)
			holdHeap(b)
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				runtime.KeepAlive(append(make([]byte, 0, len(raw)), raw...))
			}
		})
	}
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("iceberg-go/snapshots=%d", n), func(b *testing.B) {
			raw, body := benchTable(b, n, 50), benchUpdates(n)
			holdHeap(b)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := oracleCommit(raw, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// oracleCommit does the same append with iceberg-go's table package.
func oracleCommit(raw, body []byte) error {
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return err
	}
	var updates table.Updates
	if err := json.Unmarshal(body, &updates); err != nil {
		return err
	}
	builder, err := table.MetadataBuilderFromBase(meta, benchEnv().BaseLocation)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if err := u.Apply(builder); err != nil {
			return err
		}
	}
	next, err := builder.Build()
	if err != nil {
		return err
	}
	_, err = json.Marshal(next)
	return err
}

func BenchmarkParse(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("snapshots=%d", n), func(b *testing.B) {
			raw := benchTable(b, n, 50)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := metadata.Parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRawRefs(b *testing.B) {
	raw := benchTable(b, 1_000, 50)
	for b.Loop() {
		d, err := metadata.Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		d.RawRefs()
	}
}

// TestCommitDerivesItsIndex makes so many commits to a table that chunks fill up and the hash table
// of positions is rebuilt. It compares the index with the one from Parse.
func TestCommitDerivesItsIndex(t *testing.T) {
	t.Parallel()
	const first, commits = 200, 400
	d, err := metadata.Parse(benchTable(t, first, 5))
	if err != nil {
		t.Fatal(err)
	}
	for n := first; n < first+commits; n++ {
		if d, err = d.Apply(decodeTest(t, string(benchUpdates(n))), benchEnv()); err != nil {
			t.Fatal(err)
		}
	}
	checkIndex(t, d)
	for n := 1; n <= first+commits; n++ {
		if !d.HasSnapshot(benchFirstID + int64(n)) {
			t.Errorf("snapshot %d is not found", n)
		}
	}
	if d.HasSnapshot(benchFirstID) || d.HasSnapshot(benchFirstID+first+commits+1) {
		t.Error("found snapshots that are not there")
	}
}

// BenchmarkSmallCommit measures the cost, in a transaction, of a small table with a full metadata
// log, without storage and the store. Its requirements and updates are decoded, checked and
// applied. Of the allocated memory, the new document keeps its bytes, the positions of its members,
// its properties, and the elements of changed arrays.
func BenchmarkSmallCommit(b *testing.B) {
	const versions = 10
	setProperties := func(n int) string {
		return fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"%d"}}]}`, 1_000_000+n)
	}
	appendFiles := func(n int) string {
		return fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}],"updates":%s}`,
			testUUID, benchFirstID+n, benchUpdates(n))
	}
	for _, row := range []struct {
		name   string
		commit func(n int) string
	}{{"set-properties", setProperties}, {"append", appendFiles}} {
		b.Run(row.name, func(b *testing.B) {
			properties := fmt.Sprintf(`{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"%d"}}`, versions)
			d, err := createTest(b, 2).Apply(decodeTest(b, properties), benchEnv())
			for n := range versions {
				if err == nil {
					d, err = d.Apply(decodeTest(b, string(benchMember(b, row.commit(n), "updates"))), benchEnv())
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			next := row.commit(versions)
			requirements, updates := benchMember(b, next, "requirements"), benchMember(b, next, "updates")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeAndApply(d, requirements, updates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchMember(tb testing.TB, object, key string) []byte {
	tb.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		tb.Fatal(err)
	}
	return members[key]
}

func decodeAndApply(d *metadata.Document, requirements, updates []byte) (*metadata.Document, error) {
	var step metadata.Step
	var err error
	if step.Requirements, err = checked(metadata.DecodeRequirements, requirements); err != nil {
		return nil, err
	}
	if step.Updates, err = checked(metadata.DecodeUpdates, updates); err != nil {
		return nil, err
	}
	return metadata.ApplySteps(d, []metadata.Step{step}, benchEnv())
}
