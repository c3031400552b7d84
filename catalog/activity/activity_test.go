package activity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/activity"
	"moorage/registry"
)

var start = time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)

func table(n int) activity.Table {
	return activity.Table{
		ID:    registry.ID{byte(n >> 16), byte(n >> 8), byte(n)},
		Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: fmt.Sprintf("t%05d", n)},
	}
}

// Rates cover the last ten seconds. Rates of tables cover about half a minute.
func TestRates(t *testing.T) {
	t.Parallel()
	a := activity.New(start)
	now := start
	for i := range 60 {
		now = start.Add(time.Duration(i) * time.Second)
		for range 20 {
			a.Committed(now, table(1), "key:etl", 5*time.Millisecond, 2*time.Millisecond)
		}
		a.Conflicted(now, table(1))
		for range 160 {
			if a.Loads() {
				a.Loaded(now, table(2), time.Millisecond)
			}
		}
	}
	top := a.Top(now.Add(time.Second), 20)
	if top.Commits != 20 || top.Conflicts != 1 || top.Loads != 160 || !top.Since.Equal(start) {
		t.Errorf("got %+v", top)
	}
	if top.CommitP99 < 5*time.Millisecond || top.CommitP99 > 6250*time.Microsecond || top.LoadP99 < time.Millisecond || top.LoadP99 > 1250*time.Microsecond {
		t.Errorf("latencies are %s and %s", top.CommitP99, top.LoadP99)
	}
	if len(top.Tables) != 2 || top.Tables[0].Ident.Name != "t00001" || top.Tables[1].Ident.Name != "t00002" {
		t.Fatalf("tables are %+v", top.Tables)
	}
	if one := top.Tables[0]; one.Commits != 20 || one.Conflicts != 1 || one.LastBy != "key:etl" || one.WaitP99 != 4*time.Millisecond {
		t.Errorf("the first is %+v", one)
	}
	if two := top.Tables[1]; two.Loads != 160 || two.Commits != 0 {
		t.Errorf("the second is %+v", two)
	}
	idle := a.Top(now.Add(5*time.Minute), 20)
	if idle.Commits != 0 || idle.CommitP99 != 0 || len(idle.Tables) != 0 || len(idle.Minutes) != 1 {
		t.Errorf("after five minutes of nothing: %+v", idle)
	}
	if m := idle.Minutes[0]; !m.At.Equal(start) || m.Commits != 1200 || m.Conflicts != 60 || m.Loads != 9600 || m.CommitP99 == 0 {
		t.Errorf("the minute is %+v", m)
	}
}

// The last sixty minutes are kept.
func TestMinutes(t *testing.T) {
	t.Parallel()
	a := activity.New(start)
	for i := range 100 {
		a.Committed(start.Add(time.Duration(i)*time.Minute), table(i), "ann", time.Second, 0)
	}
	minutes := a.Top(start.Add(100*time.Minute), 0).Minutes
	if len(minutes) != activity.MinutesKept || !minutes[0].At.Equal(start.Add(40*time.Minute)) || !minutes[59].At.Equal(start.Add(99*time.Minute)) {
		t.Errorf("%d minutes from %s to %s", len(minutes), minutes[0].At, minutes[len(minutes)-1].At)
	}
}

// Tables with many commits are found among thousands that have a few.
func TestBusiestTables(t *testing.T) {
	t.Parallel()
	a := activity.New(start)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 200_000 {
		of := table(100 + random.IntN(10_000))
		if i%4 == 0 {
			of = table(random.IntN(20)) // each has 1.25 % of all commits; the bound is 1/128
		}
		a.Committed(start, of, "ann", 0, 0)
	}
	var names []string
	for _, busy := range a.Top(start, 20).Tables {
		names = append(names, busy.Ident.Name)
	}
	slices.Sort(names)
	for i := range 20 {
		if !slices.Contains(names, table(i).Ident.Name) {
			t.Errorf("%s is not among the busiest: %q", table(i).Ident.Name, names)
		}
	}
}

// Percentiles are at most a quarter too high, over all durations that a request can have.
func TestPercentiles(t *testing.T) {
	t.Parallel()
	for took := 20 * time.Microsecond; took < time.Minute; took = took * 11 / 10 {
		a := activity.New(start)
		for range 100 {
			a.Committed(start, table(1), "ann", took, 0)
		}
		if got := a.Top(start, 0).CommitP99; got < took || got > took*5/4+16*time.Microsecond {
			t.Errorf("p99 of %s is %s", took, got)
		}
	}
}

func refusal(of activity.Table, at time.Time, reason string) activity.Refusal {
	return activity.Refusal{At: at, Of: of, Caller: "ann", Kind: moorage.KindCommitFailed, Reason: reason}
}

// Refusals are kept for a day: at most 64 of a table, 20,000 in all, and 3.5 MiB.
func TestRefusals(t *testing.T) {
	t.Parallel()
	everything := func(*activity.Refusal) bool { return true }
	a := activity.New(start)
	for i := range 100 {
		a.Refused(refusal(table(1), start.Add(time.Duration(i)*time.Second), fmt.Sprint(i)))
	}
	a.Refused(refusal(table(2), start.Add(time.Hour), strings.Repeat("é", 1000)))
	of := a.RefusalsOf(table(1).ID, start.Add(time.Hour))
	if len(of) != activity.RefusalsOfOneMax || of[0].Reason != "99" || of[63].Reason != "36" {
		t.Errorf("%d refusals, from %q", len(of), of[0].Reason)
	}
	if all := a.RefusalsWithin(start.Add(time.Hour), 10, everything); len(all) != 10 || all[0].Of.ID != table(2).ID || len(all[0].Reason) != 300 {
		t.Errorf("the newest are %+v", all)
	}
	if rest := a.RefusalsWithin(start.Add(24*time.Hour+90*time.Second), 100, everything); len(rest) != 11 {
		t.Errorf("after a day %d are left, want the last 10 and 1", len(rest))
	}
	if gone := a.RefusalsOf(table(1).ID, start.Add(25*time.Hour)); len(gone) != 0 {
		t.Errorf("after more than a day %d are left", len(gone))
	}
	many := activity.New(start)
	for i := range 30_000 {
		many.Refused(refusal(table(i), start, strings.Repeat("x", 300)))
	}
	kept := many.RefusalsWithin(start, 30_000, everything)
	if len(kept) < 4000 || len(kept) > 7<<19/700 || kept[0].Of.ID != table(29_999).ID {
		t.Errorf("%d long refusals are kept", len(kept))
	}
	if len(many.RefusalsOf(kept[len(kept)-1].Of.ID, start)) != 1 || len(many.RefusalsOf(table(0).ID, start)) != 0 {
		t.Error("the oldest were not the first to go")
	}
}

// BenchmarkCommitted measures the cost of counting a commit. As in practice, a few tables are busy.
func BenchmarkCommitted(b *testing.B) {
	a := activity.New(start)
	random := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(random, 1.3, 1, 9_999)
	tables := make([]activity.Table, 4096)
	for i := range tables {
		tables[i] = table(int(zipf.Uint64()))
	}
	i := 0
	for b.Loop() {
		a.Committed(start, tables[i&4095], "key:etl", 5*time.Millisecond, 0)
		i++
	}
}

// BenchmarkColdTables measures a commit to a table without earlier commits.
func BenchmarkColdTables(b *testing.B) {
	a := activity.New(start)
	tables := make([]activity.Table, 4096)
	for i := range tables {
		tables[i] = table(i)
	}
	i := 0
	for b.Loop() {
		a.Committed(start, tables[i&4095], "key:etl", 5*time.Millisecond, 0)
		i++
	}
}

// BenchmarkLoads measures the cost of counting a load. One in sixteen loads is timed.
func BenchmarkLoads(b *testing.B) {
	a := activity.New(start)
	of := table(1)
	for b.Loop() {
		if a.Loads() {
			a.Loaded(start, of, time.Millisecond)
		}
	}
}
