package pebble_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/pebble"
)

// benchRecords is the number of tables in the store of the benchmarks.
const benchRecords = 10_000

// benchPointer returns a typical pointer of a table.
func benchPointer(b *testing.B, n int) []byte {
	b.Helper()
	value, err := registry.Encode(registry.Pointer{
		ID: benchID(n), Warehouse: "default", Namespace: moorage.Namespace{"sales", "orders"}, Name: fmt.Sprintf("table_%06d", n),
		NamespaceID: benchID(1), TableUUID: "0190f3a0-1234-7abc-8def-0123456789ab",
		MetadataLocation: fmt.Sprintf("file:///data/default/sales/orders/table_%06d/metadata/00012-0190f3a0-1234-7abc-8def-0123456789ab.metadata.json", n),
		Claims:           []string{fmt.Sprintf("file:///data/default/sales/orders/table_%06d", n)},
	})
	if err != nil {
		b.Fatal(err)
	}
	return value
}

func benchID(n int) registry.ID {
	return registry.ID{12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
}

// benchStore returns a store with the records of many tables.
func benchStore(b *testing.B) *pebble.Store {
	b.Helper()
	s, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	for n := 0; n < benchRecords; n += 1000 {
		var batch registry.Batch
		for i := n; i < n+1000; i++ {
			batch.Writes = append(batch.Writes,
				registry.Put(registry.PointerKey(benchID(i)), registry.StateLive, benchPointer(b, i)),
				registry.Put(registry.EntryKey(benchID(1), fmt.Sprintf("table_%06d", i)), registry.StateTable, []byte(`{"pointer":"00000000000000000000000000000001","shard":3}`)))
		}
		if _, err := s.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkGet reads the records of a load: one pointer, or also the records on the path to it.
func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	keys := make([][]registry.Key, benchRecords)
	for i := range keys {
		keys[i] = []registry.Key{registry.PointerKey(benchID(i)), registry.EntryKey(benchID(1), fmt.Sprintf("table_%06d", i)), registry.PointerKey(benchID(i + 1))}
	}
	for _, count := range []int{1, 3} {
		b.Run(fmt.Sprintf("keys=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := s.Get(b.Context(), keys[n*7919%benchRecords][:count]...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGetWhileWriting reads while a client writes. Reads never wait for the client's syncs.
func BenchmarkGetWhileWriting(b *testing.B) {
	s := benchStore(b)
	var done atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !done.Load() {
			if _, err := s.Apply(b.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.PointerKey(benchID(0)), registry.StateLive, nil)}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	key := registry.PointerKey(benchID(77))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
	done.Store(true)
	writer.Wait()
}

// BenchmarkApply makes the writes of a commit to one table: a pointer, on condition of its ETag,
// and a change. Each client has its own table.
func BenchmarkApply(b *testing.B) {
	for _, clients := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := benchStore(b)
			var commits atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for client := range clients {
				group.Go(func() {
					key, value := registry.PointerKey(benchID(client)), benchPointer(b, client)
					records, err := s.Get(b.Context(), key)
					if err != nil {
						b.Error(err)
						return
					}
					etag := records[0].ETag
					for {
						n := commits.Add(1)
						if n > int64(b.N) {
							return
						}
						etags, err := s.Apply(b.Context(), registry.Batch{
							Conditions: []registry.Condition{registry.ETagIs(key, etag)},
							Writes: []registry.Write{registry.Put(key, registry.StateLive, value).Over(
								registry.Record{Key: key, ETag: etag, State: registry.StateLive, Value: value})},
							Change: &registry.Change{ID: registry.ID{0: 1, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}, Operation: "commit"},
						})
						if err != nil {
							b.Error(err)
							return
						}
						etag = etags[0]
					}
				})
			}
			group.Wait()
		})
	}
}

// BenchmarkOpen opens and closes two stores: a new one, and one with the records of many tables.
func BenchmarkOpen(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			openAndClose(b, b.TempDir())
		}
	})
	b.Run("full", func(b *testing.B) {
		dir := b.TempDir()
		s, err := pebble.Open(dir, pebble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for n := range benchRecords {
			if n%100 == 0 {
				var batch registry.Batch
				for i := n; i < n+100; i++ {
					batch.Writes = append(batch.Writes, registry.Put(registry.PointerKey(benchID(i)), registry.StateLive, benchPointer(b, i)))
				}
				if _, err := s.Apply(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			openAndClose(b, dir)
		}
	})
}

func openAndClose(b *testing.B, dir string) {
	b.Helper()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBackup makes backups while a client commits, and reports the longest duration of a
// commit.
func BenchmarkBackup(b *testing.B) {
	s := benchStore(b)
	parent := b.TempDir()
	var done atomic.Bool
	var longest time.Duration
	var writer sync.WaitGroup
	writer.Go(func() {
		for !done.Load() {
			began := time.Now()
			if _, err := s.Apply(b.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.PointerKey(benchID(0)), registry.StateLive, nil)}}); err != nil {
				b.Error(err)
				return
			}
			longest = max(longest, time.Since(began))
		}
	})
	for n := 0; b.Loop(); n++ {
		if _, err := s.Backup(b.Context(), filepath.Join(parent, fmt.Sprint(n)), "registry", nil); err != nil {
			b.Fatal(err)
		}
	}
	done.Store(true)
	writer.Wait()
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-commit-ms")
}
