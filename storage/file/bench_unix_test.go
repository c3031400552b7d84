//go:build unix

package file_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"moorage/storage/file"
)

// BenchmarkCreate writes files of 4 kB, either into the existing folders of 300 tables, or each
// into the folder of a new table. It reports the user and system time for one file. With TMPDIR in
// memory, it shows the cost of a Create in addition to the disk's.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("old/clients=%d", clients), func(b *testing.B) { benchmarkCreate(b, clients, 300) })
		b.Run(fmt.Sprintf("new/clients=%d", clients), func(b *testing.B) { benchmarkCreate(b, clients, math.MaxInt64) })
	}
}

// benchmarkCreate writes files into the folders of the given number of tables, in turn.
func benchmarkCreate(b *testing.B, clients int, tables int64) {
	ctx := context.Background()
	root := b.TempDir()
	store, err := file.New([]string{root})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	body := make([]byte, 4096)
	create := func(n int64) {
		at := fmt.Sprintf("%s/warehouse/harbour/ships%d/metadata/%d.metadata.json", root, n%tables, n)
		if err := store.Create(ctx, at, body); err != nil {
			b.Fatal(err)
		}
	}
	const made = 300
	for n := range int64(made) {
		create(n)
	}
	var next atomic.Int64
	next.Store(made)
	b.SetParallelism((clients + 1) / 2)
	userBefore, systemBefore := processorTime(b)
	b.ResetTimer()
	if clients == 1 {
		for b.Loop() {
			create(next.Add(1))
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				create(next.Add(1))
			}
		})
	}
	user, system := processorTime(b)
	b.ReportMetric((user-userBefore)/float64(b.N)*1e6, "user-µs/op")
	b.ReportMetric((system-systemBefore)/float64(b.N)*1e6, "system-µs/op")
}

// BenchmarkMayBeGone checks whether a file still exists, as each load of a table does.
func BenchmarkMayBeGone(b *testing.B) {
	root := b.TempDir()
	store, err := file.New([]string{root})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	at := root + "/warehouse/harbour/ships/metadata/00000.metadata.json"
	if err := store.Create(context.Background(), at, []byte("{}")); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if store.MayBeGone(at) {
				b.Error("it is there")
				return
			}
		}
	})
}

// processorTime returns the processor time used by this process, in seconds.
func processorTime(b *testing.B) (user, system float64) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return seconds(used.Utime), seconds(used.Stime)
}
