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
	// flatRatio is how much larger the maximum of the last third may be than that of the second
	// third.
	flatRatio = 1.2
	// flatFrom is from which duration on the thirds are compared. Changes are kept for 20 minutes
	// at least, longer than all else. So rows grow until then, which must be the first third.
	flatFrom = time.Hour
	// flatWindow is the length of a window. Only its minimum counts: what a collection left.
	// The runtime collects every two minutes at least.
	flatWindow = 150 * time.Second
)

// allowance returns by how much a series may be larger in any case. Small counts go up and down by
// more than a fifth.
func allowance(series string) float64 {
	kind, _, _ := strings.Cut(series, ",")
	switch {
	case kind == seriesHeap:
		return 12 // MiB: two documents of the faults, or half of the cache, more or less
	case kind == seriesResident:
		return 48 // MiB: pages that the runtime has not given back yet, of one large body or page of a list
	case kind == seriesGoroutines:
		return 80 // a few for each connection of a full pool, and those of a dozen requests
	case kind == seriesThreads:
		return 12 // a few system calls at once
	case kind == seriesDescriptors:
		return 80 // a full pool of 24 connections to the database, and connections of clients
	case kind == seriesConnections:
		return 8 // a pool fills up and shrinks
	case kind == seriesFiles:
		return 400 // what kills leave, and a purge that is late
	}
	return 60 // rows: one of a session, a lease, a blocked transaction; what ten seconds of the load make
}

// judgeFlat returns what is not flat in samples of so long a run.
func judgeFlat(samples []sample, duration time.Duration) (table, problems []string) {
	third := duration / 3
	return compare(samples, "second third", func(series string) float64 { return peak(samples, series, third, 2*third, flatWindow) },
		"last third", func(series string) float64 { return peak(samples, series, 2*third, duration, flatWindow) })
}

// residentMax bounds the resident memory of a node at any time: its caches, the room for long
// bodies and documents, and what the collector has not collected yet.
const residentMax = 700 // MiB

// judgeEnd returns what is larger in the calm at the end of a short run than in that at its begin.
// Of memory and connections it returns what was too much at any time: a collection, and the end of
// an idle connection, take longer than such a run. Rows and files grow until the first retention is
// over, and the runtime keeps the threads that a storage held.
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

// compare returns a line for each series, and those in which the second value is too large.
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
		// The comparison fails for a value that is missing too.
		if !(b <= max(flatRatio*a, a+allowance(series))) {
			problems = append(problems, "not flat: "+line)
		}
	}
	return table, problems
}

// A series that grows is found, also by a little each minute. One that goes up and down is not.
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
