package soak

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// flatRatio bounds the ratio of the last third's maximum to the second third's.
	flatRatio = 1.2
	// flatFrom is the shortest duration for which the thirds are compared. Changes have the longest
	// retention, at least 20 minutes. Rows grow until then, so that time must be within the first
	// third.
	flatFrom = time.Hour
	// flatWindow is the length of a window. Only its minimum counts: the value after a garbage
	// collection. The runtime collects at least every two minutes.
	flatWindow = 150 * time.Second
)

// allowance returns the growth of a series that is always allowed. Small counts fluctuate by more
// than a fifth.
func allowance(series string) float64 {
	kind, _, _ := strings.Cut(series, ",")
	switch {
	case kind == seriesHeap:
		return 12 // MiB: about two documents of the faults, or half of the cache
	case kind == seriesResident:
		return 48 // MiB: pages not yet released by the runtime, from one large body or list page
	case kind == seriesGoroutines:
		return 80 // a few per connection of a full pool, and some for a dozen requests
	case kind == seriesThreads:
		return 12 // a few system calls at once
	case kind == seriesDescriptors:
		return 80 // a full pool of 24 connections to the database, and connections of clients
	case kind == seriesConnections:
		return 8 // a pool fills up and shrinks
	case kind == seriesFiles:
		return 400 // leftovers of kills, and a late purge
	}
	return 60 // rows: a session, a lease, a blocked transaction, and ten seconds of the load
}

// judgeFlat returns the comparison of all series, and the series that are not flat over a run of
// the duration.
func judgeFlat(samples []sample, duration time.Duration) (table, problems []string) {
	third := duration / 3
	return compare(samples, "second third", func(series string) float64 { return peak(samples, series, third, 2*third, flatWindow) },
		"last third", func(series string) float64 { return peak(samples, series, 2*third, duration, flatWindow) })
}

// residentMax bounds the resident memory of a node at any time: its caches, the memory for long
// bodies and documents, and uncollected garbage.
const residentMax = 700 // MiB

// judgeEnd returns the series that are larger in the calm at the end of a short run than in the one
// at its beginning. For memory and connections it checks the maximum of the run: a garbage
// collection, and the timeout of an idle connection, take longer than a short run. It ignores rows
// and files, which grow until the first retention time is over. It also ignores threads: the
// runtime keeps the threads that a hanging storage blocked.
func judgeEnd(all, begin, end []sample) (table, problems []string) {
	lowest := func(samples []sample) func(string) float64 {
		return func(series string) float64 { return peak(samples, series, 0, flatFrom, flatFrom) }
	}
	table, found := compare(all, "begin", lowest(begin), "end", lowest(end))
	for _, problem := range found {
		if strings.Contains(problem, seriesGoroutines) || strings.Contains(problem, seriesDescriptors) {
			problems = append(problems, problem)
		}
	}
	for _, s := range all {
		for series, value := range s.values {
			kind, _, _ := strings.Cut(series, ",")
			if kind == seriesResident && value > residentMax || kind == seriesConnections && value > processesMax*nodesCount {
				problems = append(problems, fmt.Sprintf("at %s: %s: %.0f", s.at.Round(time.Second), series, value))
			}
		}
	}
	return table, problems
}

// compare returns a line for each series, and the lines whose second value is too large.
func compare(samples []sample, nameBefore string, before func(string) float64, nameAfter string, after func(string) float64) (table, problems []string) {
	names := map[string]bool{}
	for _, s := range samples {
		for series := range s.values {
			names[series] = true
		}
	}
	for _, series := range slices.Sorted(maps.Keys(names)) {
		a, b := before(series), after(series)
		line := fmt.Sprintf("%-44s %s %8.0f, %s %8.0f", series, nameBefore, a, nameAfter, b)
		table = append(table, line)
		// The comparison also fails for a missing value.
		if !(b <= max(flatRatio*a, a+allowance(series))) {
			problems = append(problems, "not flat: "+line)
		}
	}
	return table, problems
}

// judgeFlat reports a series that grows, even slowly, but not one that fluctuates.
func TestJudgeFlat(t *testing.T) {
	t.Parallel()
	const duration = time.Hour
	for _, tt := range []struct {
		name  string
		value func(minute float64) float64
		flat  bool
	}{
		{"constant", func(float64) float64 { return 1000 }, true},
		{"up and down", func(m float64) float64 { return 1000 + 400*math.Sin(m) }, true},
		{"grows at first", func(m float64) float64 { return 1000 * min(m, 20) }, true},
		{"grows", func(m float64) float64 { return 1000 * m }, false},
		{"grows on top of much", func(m float64) float64 { return 5000 + 250*m }, false},
		{"a short peak", func(m float64) float64 {
			if int(m) == 50 {
				return 9000
			}
			return 1000
		}, true},
		{"is missing at the end", func(m float64) float64 {
			if m >= 40 {
				return math.NaN()
			}
			return 1000
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var samples []sample
			for at := time.Duration(0); at < duration; at += 10 * time.Second {
				values := map[string]float64{}
				if v := tt.value(at.Minutes()); !math.IsNaN(v) {
					values[seriesFiles] = v
				}
				samples = append(samples, sample{at, values})
			}
			if _, problems := judgeFlat(samples, duration); (len(problems) == 0) != tt.flat {
				t.Errorf("problems %q, want flat: %t", problems, tt.flat)
			}
		})
	}
}
