package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// With the percentage for each heap, the next collection begins at the floor, or when the heap has
// 1.5 times the size of the live heap.
func TestCollectPercent(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, row := range []struct {
		name string
		heap heap
		want int
	}{
		{"nothing is live", heap{}, collectPercentMax},
		{"a megabyte", heap{live: mib}, collectPercentMax},
		{"eight megabytes", heap{live: 8 * mib}, 700},
		{"eight megabytes and stacks", heap{live: 8 * mib, scanned: 6 * mib}, 400},
		{"half the floor", heap{live: 32 * mib}, 100},
		{"a lot of stacks", heap{live: 40 * mib, scanned: 40 * mib}, collectPercent},
		{"nearly the floor", heap{live: 60 * mib}, collectPercent},
		{"more than the floor", heap{live: 300 * mib}, collectPercent},
	} {
		if got := collectPercentFor(row.heap); got != row.want {
			t.Errorf("%s: %+v has the percent %d, want %d", row.name, row.heap, got, row.want)
		}
	}
}

// A server with little live heap collects at the floor, unless the operator chose something else.
func TestServeHoldsTheHeapFloor(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, row := range []struct {
		name        string
		environ     []string
		least, most float64 // bytes of the heap at which the next collection begins
	}{
		{"nothing chosen", nil, 0.9 * heapFloorBytes, 1.1 * heapFloorBytes},
		{"GOGC", []string{"GOGC=100"}, 4 * mib, heapFloorBytes / 2},
		{"GOMEMLIMIT", []string{"GOMEMLIMIT=48MiB"}, 4 * mib, 48 * mib},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			process := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0",
				"--data", t.TempDir(), "--store", "memory")
			process.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
				return strings.HasPrefix(variable, "GOGC=") || strings.HasPrefix(variable, "GOMEMLIMIT=")
			}), asCommand+"="+asUsual)
			process.Env = append(process.Env, row.environ...)
			server := startReady(t, process)
			begun := server.collections(t)
			for deadline := time.Now().Add(patience); server.collections(t) < begun+2; {
				if time.Now().After(deadline) {
					t.Fatalf("no two collections within %s", patience)
				}
			}
			// The percentage is set in the background, soon after a collection.
			var next float64
			for range 100 {
				if next = server.measured(t, "go_memstats_next_gc_bytes"); next >= row.least && next <= row.most {
					return
				}
			}
			t.Errorf("the next collection begins at %.0f bytes, want %.0f to %.0f", next, row.least, row.most)
		})
	}
}

// collections returns the number of collections of the server's heap.
func (s *served) collections(t *testing.T) float64 {
	t.Helper()
	return s.measured(t, "go_gc_duration_seconds_count")
}

// measured returns the value of a metric without labels.
func (s *served) measured(t *testing.T, metric string) float64 {
	t.Helper()
	_, text := s.request(t, "GET", "/metrics", "")
	found := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s is not in\n%s", metric, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
