package rest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkTransaction compares commits of one table with transactions of two and of ten tables.
// The answer to a commit is compressed with gzip, as engines request it, or plain. The time is the
// one that a client waits: from the request's bytes on a connection to the answer's bytes. Each
// request sets a property of each table.
//
// The client sends the next request at once or after a pause, like a client that does other work in
// between. After a pause, a sleeping processor must wake up first, for every kind of request. One
// iteration sends a few requests of each kind, so that the state of the machine is the same for all
// kinds. The first of them are not counted, because the preceding requests make them slow: after
// transactions of ten tables, the next ten or twenty commits take up to three times as long.
//
// The metrics are the mean and the median of each kind, in microseconds. There is also the ratio of
// ten tables to either kind of commit, for the mean and for the median. On ext4 without a journal,
// a run is slower if it begins within six minutes of another, above all for ten tables: see
// docs/performance.md.
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

// post is a kind of request that sets a property of some tables, with $n in place of the value.
type post struct {
	name, path, encoding, body string
	times                      []time.Duration
}

func benchmarkTransaction(b *testing.B, w *world, pause time.Duration) {
	const setProperty = `"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"$n"}}]`
	tables := 0
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	newTable := func() (name string) { // a table that no other request changes
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
	b.ReportMetric(0, "ns/op") // the time of one iteration is meaningless
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
