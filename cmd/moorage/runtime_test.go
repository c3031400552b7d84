package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// At least four threads run Go code, unless the operator or a limit of the container sets the
// number.
func TestProcessorsFor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                 string
		environ              []string
		runtimes, processors int
		want                 int
	}{
		{"one processor", nil, 1, 1, 4},
		{"two processors", nil, 2, 2, 4},
		{"eight processors", nil, 8, 8, 8},
		{"a container with two of eight processors", nil, 2, 8, 2},
		{"the operator chose", []string{"HOME=/", "GOMAXPROCS=1"}, 1, 2, 1},
		{"the variable is empty", []string{"GOMAXPROCS="}, 2, 2, 4},
		{"another variable", []string{"GOMAXPROCSX=1"}, 2, 2, 4},
	} {
		if got := processorsFor(row.environ, row.runtimes, row.processors); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// A server shows in its metrics how many threads run Go code.
func TestServeRaisesProcessors(t *testing.T) {
	t.Parallel()
	chosen := func(variable string) bool { return strings.HasPrefix(variable, "GOMAXPROCS=") }
	usual := slices.DeleteFunc(os.Environ(), chosen)
	alone := processorsFor(nil, runtime.NumCPU(), runtime.NumCPU())
	for _, row := range []struct {
		name    string
		environ []string
		want    func(threads int) bool
	}{
		// In a container with a limit, the server may have fewer threads.
		{"nothing chosen", nil, func(threads int) bool { return threads == alone || threads < runtime.NumCPU() }},
		{"GOMAXPROCS", []string{"GOMAXPROCS=3"}, func(threads int) bool { return threads == 3 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			process := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0",
				"--data", t.TempDir(), "--store", "memory")
			process.Env = append(slices.Clone(usual), asCommand+"="+asUsual)
			process.Env = append(process.Env, row.environ...)
			threads := startReady(t, process).measured(t, "go_sched_gomaxprocs_threads")
			if !row.want(int(threads)) {
				t.Errorf("%v threads run Go code on %d processors", threads, runtime.NumCPU())
			}
		})
	}
}

// After a burst, memory is returned to the system once, and not while requests need it.
func TestFreeing(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	freed := 0
	var now heapUse
	f := &freeing{read: func() heapUse { return now }, free: func() {
		freed++
		now.held = now.live
	}}
	for _, row := range []struct {
		name      string
		allocates uint64 // bytes since the previous check
		holds     uint64 // bytes beyond the live heap
		want      int    // how many times memory has been freed so far
	}{
		{"the start", 40 * mib, 40 * mib, 0},
		{"idle with little to spare", mib, spareBytesMin - 1, 0},
		{"a burst", 400 * mib, 100 * mib, 0},
		{"the burst goes on", 400 * mib, 100 * mib, 0},
		{"the burst is over", quietBytes - 1, 100 * mib, 1},
		{"idle", mib, mib, 1},
		{"another burst", 400 * mib, 100 * mib, 1},
		{"that is over", 0, 100 * mib, 2},
	} {
		now.live = 80 * mib
		now.allocated += row.allocates
		now.held = now.live + row.holds
		if err := f.look(t.Context()); err != nil || freed != row.want {
			t.Errorf("%s: freed %d times, %v, want %d", row.name, freed, err, row.want)
		}
	}
}

// The measurements of the runtime have the relations on which freeing relies.
func TestReadHeapUse(t *testing.T) {
	runtime.GC()
	before := readHeapUse()
	garbage := make([]byte, 64<<20)
	after := readHeapUse()
	runtime.KeepAlive(garbage)
	if before.live == 0 || after.allocated < before.allocated+64<<20 || after.held < 64<<20 {
		t.Errorf("before: %+v, after 64 MiB: %+v", before, after)
	}
}
