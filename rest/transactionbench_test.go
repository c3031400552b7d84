package rest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkTransaction is a commit of one table, answered with gzip, as engines ask for it, and
// plainly, and transactions of two and of ten tables. Each is as a client waits for it: from the
// request's bytes on a connection to the answer's. Each sets a property of each table. The client
// sends the next request at once, or pauses first, as one does that has something else to do than
// to commit: then a processor that sleeps has to wake up for each request, of whatever kind. One
// iteration sends some of each kind: so few that the machine is the same to all kinds. The first of
// them are not counted, because what comes before makes them slow. Behind transactions of ten
// tables a commit takes up to three times as long, and ten or twenty of them pass until it does not
// any more. The metrics are the mean and the median of each kind, in microseconds, and how many
// times as long as either commit ten tables take by them. On ext4 without a journal a run is slower
// within six minutes of another, most of all for ten tables: docs/performance.md.
func BenchmarkTransaction(b *testing.B) {
	stores := []struct {
		name string
		open func(*testing.B) *world
	}{
		{"memory", func(b *testing.B) *world { return newMemoryWorld(b) }},
		{"file", newDiskWorld},
	}
	for _, store := range stores {
		for _, pause := range []time.Duration{0, time.Millisecond} {
			b.Run(fmt.Sprintf("store=%s/pause=%v", store.name, pause), func(b *testing.B) { benchmarkTransaction(b, store.open(b), pause) })
		}
	}
}

// post is a kind of request that sets a property of some tables, with $n in the place of its value.
type post struct {
	name, path, encoding, body string
	times                      []time.Duration
}

func benchmarkTransaction(b *testing.B, w *world, pause time.Duration) {
	const setProperty = `"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"$n"}}]`
	tables := 0
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	newTable := func() (name string) { // that nothing else changes
		tables++
		name = fmt.Sprintf("t%d", tables)
		w.must("POST", pathTables, fmt.Sprintf(`{"name":"%s","schema":%s,"properties":{"write.metadata.previous-versions-max":"10"}}`, name, schemaJSON))
		return name
	}
	commit := func(name, encoding string) *post {
		return &post{name: name, path: pathTables + "/" + newTable(), encoding: encoding, body: "{" + setProperty + "}"}
	}
	transaction := func(tables int) *post {
		var changes []string
		for range tables {
			changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["ns"],"name":"%s"},%s}`, newTable(), setProperty))
		}
		return &post{name: fmt.Sprintf("%d-tables", tables), path: pathTransact, encoding: "gzip", body: `{"table-changes":[` + strings.Join(changes, ",") + `]}`}
	}
	packed, plain, two, ten := commit("commit", "gzip"), commit("plain-commit", "identity"), transaction(2), transaction(10)
	posts := []*post{packed, plain, two, ten}
	client := newRawClient(b, w)
	for n := 0; b.Loop(); {
		for _, sent := range posts {
			const together, uncounted = 75, 25
			for i := range together {
				n++
				body := strings.ReplaceAll(sent.body, "$n", strconv.Itoa(n))
				<-time.After(pause)
				began := time.Now()
				client.post(sent.path, sent.encoding, body)
				if took := time.Since(began); i >= uncounted {
					sent.times = append(sent.times, took)
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of one of each means nothing
	for _, sent := range posts {
		b.ReportMetric(mean(sent.times), sent.name+"-mean-µs")
		b.ReportMetric(median(sent.times), sent.name+"-p50-µs")
	}
	for _, one := range []*post{packed, plain} {
		b.ReportMetric(mean(ten.times)/mean(one.times), "10-to-"+one.name+"-mean")
		b.ReportMetric(median(ten.times)/median(one.times), "10-to-"+one.name+"-p50")
	}
}

// mean returns the mean of times, in microseconds.
func mean(times []time.Duration) float64 {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum.Seconds() * 1e6 / float64(len(times))
}

// median returns the median of times, in microseconds, and sorts them.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return times[len(times)/2].Seconds() * 1e6
}
