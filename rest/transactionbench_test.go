package rest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkTransaction is a commit of one table, answered with gzip, as engines ask for it, and plainly, beside transactions of two and
// of ten tables, as a client waits for them: from the request's bytes on a connection to the answer's. Each sets a property of each
// table. One iteration sends some of each kind: so few that the machine is the same to all kinds, and so many that what comes before the
// first of a kind does not matter. The metrics are the mean and the median of each kind, in microseconds, and how many times as long as a
// commit with gzip ten tables take by them.
func BenchmarkTransaction(b *testing.B) {
	b.Run("store=memory", func(b *testing.B) { benchmarkTransaction(b, newMemoryWorld(b)) })
	b.Run("store=file", func(b *testing.B) { benchmarkTransaction(b, newDiskWorld(b)) })
}

// post is a kind of request that sets a property of some tables, with $n in the place of its value.
type post struct {
	name, path, encoding, body string
}

func benchmarkTransaction(b *testing.B, w *world) {
	const setProperty = `"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"$n"}}]`
	tables := 0
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	make := func() (name string) { // a table that nothing else changes
		tables++
		name = fmt.Sprintf("t%d", tables)
		w.must("POST", pathTables, fmt.Sprintf(`{"name":"%s","schema":%s,"properties":{"write.metadata.previous-versions-max":"10"}}`, name, schemaJSON))
		return name
	}
	transaction := func(tables int) post {
		var changes []string
		for range tables {
			changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["ns"],"name":"%s"},%s}`, make(), setProperty))
		}
		return post{fmt.Sprintf("%d-tables", tables), pathTransact, "gzip", `{"table-changes":[` + strings.Join(changes, ",") + `]}`}
	}
	posts := []post{
		{"commit", pathTables + "/" + make(), "gzip", "{" + setProperty + "}"},
		{"plain-commit", pathTables + "/" + make(), "identity", "{" + setProperty + "}"},
		transaction(2),
		transaction(10),
	}
	client := newRawClient(b, w)
	times := [][]time.Duration{{}, {}, {}, {}}
	for n := 0; b.Loop(); {
		for i, sent := range posts {
			const together = 25
			for range together {
				n++
				body := strings.ReplaceAll(sent.body, "$n", strconv.Itoa(n))
				began := time.Now()
				client.post(sent.path, sent.encoding, body)
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of one of each means nothing
	for i, sent := range posts {
		b.ReportMetric(mean(times[i]), sent.name+"-mean-µs")
		b.ReportMetric(median(times[i]), sent.name+"-p50-µs")
	}
	b.ReportMetric(mean(times[3])/mean(times[0]), "10-to-1-mean")
	b.ReportMetric(median(times[3])/median(times[0]), "10-to-1-p50")
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
