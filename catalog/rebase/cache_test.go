package rebase

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
	"moorage/registry"
)

// The cache keeps the most recently used files, within its bound.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache()
	const files, bytesEach = 64, 1 << 20
	at := func(n int) place { return place{registry.ID{1}, fmt.Sprint(n)} }
	for n := range files {
		c.put(at(n), kept{contents: &contents{paths: make([]uint64, bytesEach/pathBytes)}})
		c.get(at(0))
		if c.bytes > keptBytes {
			t.Fatalf("after %d files it has %d bytes", n+1, c.bytes)
		}
	}
	for n, want := range map[int]bool{0: true, 1: false, files / 4: false, files - 1: true} {
		if got := c.get(at(n)).contents != nil; got != want {
			t.Errorf("file %d: %t, want %t", n, got, want)
		}
	}
	if c.get(place{registry.ID{2}, "0"}).contents != nil {
		t.Error("another table has the file")
	}
	for c.recent.Len() > 0 {
		c.dropLastLocked()
	}
	if c.bytes != 0 || len(c.byPlace) != 0 {
		t.Errorf("the empty cache has %d bytes and %d files", c.bytes, len(c.byPlace))
	}
}

// A file that takes more than the whole bound is not cached, and evicts nothing.
func TestCacheKeepsNoFileLargerThanItself(t *testing.T) {
	t.Parallel()
	c := newCache()
	small, huge := place{location: "small"}, place{location: "huge"}
	c.put(small, kept{contents: &contents{paths: make([]uint64, 1)}})
	before := c.bytes
	c.put(huge, kept{contents: &contents{paths: make([]uint64, keptBytes/pathBytes)}})
	if c.get(small).contents == nil || c.get(huge).contents != nil || c.bytes != before {
		t.Errorf("keeps %d files in %d bytes, want the small one in %d", c.recent.Len(), c.bytes, before)
	}
	list := listOf(t, keptBytes>>12, strings.Repeat("x", 1<<12))
	c.put(huge, kept{list: list})
	if c.get(small).contents == nil || c.get(huge).list != nil || c.bytes != before {
		t.Errorf("keeps %d files in %d bytes, want the small one in %d", c.recent.Len(), c.bytes, before)
	}
	if held := list.Hold(); held != list.Whole() {
		t.Errorf("an earlier Hold was not undone: Hold returns %d bytes, want %d", held, list.Whole())
	}
}

// Entries shared by lists count once.
func TestCacheCountsSharedEntriesOnce(t *testing.T) {
	t.Parallel()
	c := newCache()
	first := listOf(t, 1000, "m")
	c.put(place{location: "first"}, kept{list: first})
	alone := c.bytes
	for n := range 10 {
		like, err := manifests.NewList(manifests.Header{FormatVersion: 2}, nil, first.Entries(), first)
		if err != nil {
			t.Fatal(err)
		}
		c.put(place{location: fmt.Sprint(n)}, kept{list: like})
	}
	if c.bytes > 3*alone {
		t.Errorf("one list takes %d bytes, and eleven take %d", alone, c.bytes)
	}
	for c.recent.Len() > 0 {
		c.dropLastLocked()
	}
	if c.bytes != 0 {
		t.Errorf("the empty cache has %d bytes", c.bytes)
	}
}

// The cache's own count of its memory is within a quarter of its share of the heap. The test is not
// parallel, because it measures the heap.
func TestCacheCountsItsHeap(t *testing.T) {
	const tolerance = 0.25
	for _, manifestsEach := range []int{10, 1500} {
		c := newCache()
		before := heapBytes()
		for n := 0; c.bytes < keptBytes/4; n++ {
			c.put(place{location: fmt.Sprint(n)}, kept{list: listOf(t, manifestsEach, fmt.Sprint("warehouse/table/metadata/", n))})
		}
		counted, held := float64(c.bytes), float64(heapBytes()-before)
		if held < counted*(1-tolerance) || held > counted*(1+tolerance) {
			t.Errorf("lists of %d manifests: %.0f bytes are counted, and the heap holds %.0f", manifestsEach, counted, held)
		}
		runtime.KeepAlive(c)
	}
}

func heapBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the first run may leave the contents of pools
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// listOf returns a manifest list with count manifests. Their names begin with prefix.
func listOf(t *testing.T, count int, prefix string) *manifests.List {
	t.Helper()
	var files []iceberg.ManifestFile
	for n := range count {
		files = append(files, iceberg.NewManifestFile(2, fmt.Sprintf("s3://b/%s-%d.avro", prefix, n), 5000, 0, 1).
			SequenceNum(1, 1).AddedFiles(1).AddedRows(10).Build())
	}
	var out bytes.Buffer
	sequence := int64(1)
	if err := iceberg.WriteManifestList(2, &out, 1, nil, &sequence, 0, files); err != nil {
		t.Fatal(err)
	}
	list, err := new(manifests.Reader).List(out.Bytes(), nil, manifests.FileBytesMax)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
