package metadata_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"moorage/metadata"
)

// The stated cost of a document differs from its memory on the heap by at most a quarter. So a
// cache keeps within its limit and is not half empty. The test is not parallel, because it measures
// the heap.
func TestCostIsWhatTheHeapHolds(t *testing.T) {
	const tolerance = 0.25
	for _, row := range []struct {
		name    string
		updates func(d *metadata.Document) *metadata.Document
	}{
		{"new", func(d *metadata.Document) *metadata.Document { return d }},
		{"10 properties", func(d *metadata.Document) *metadata.Document { return withProperties(t, d, 10) }},
		{"1000 properties", func(d *metadata.Document) *metadata.Document { return withProperties(t, d, 1000) }},
		{"10 snapshots", func(d *metadata.Document) *metadata.Document { return withSnapshots(t, d, 10) }},
		{"300 snapshots", func(d *metadata.Document) *metadata.Document { return withSnapshots(t, d, 300) }},
	} {
		text := row.updates(createTest(t, 2)).Raw()
		for _, refs := range []bool{false, true} {
			documents := make([]*metadata.Document, max(20, 4<<20/len(text)))
			before := heapBytes()
			for i := range documents {
				documents[i] = mustParse(t, append([]byte(nil), text...))
				if refs {
					documents[i].RawRefs()
				}
			}
			held := float64(heapBytes()-before) / float64(len(documents))
			cost := float64(documents[0].CostBytes())
			if held < cost*(1-tolerance) || held > cost*(1+tolerance) {
				t.Errorf("%s, refs asked for: %t: %d bytes of JSON hold %.0f bytes and cost %.0f", row.name, refs,
					len(text), held, cost)
			}
			runtime.KeepAlive(documents)
		}
	}
}

func heapBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func withProperties(t *testing.T, d *metadata.Document, count int) *metadata.Document {
	t.Helper()
	var members []string
	for i := range count {
		members = append(members, fmt.Sprintf(`"property.number.%d":"value of %d"`, i, i))
	}
	return applyTest(t, d, `{"action":"set-properties","updates":{`+strings.Join(members, ",")+`}}`)
}

func withSnapshots(t *testing.T, d *metadata.Document, count int) *metadata.Document {
	t.Helper()
	for id := range count {
		d = applyTest(t, d, snapshotUpdates(int64(id+1), int64(id), id+1))
	}
	return d
}
