package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"moorage/testkit/servers"
)

const (
	startsMeasured  = 5
	createsMeasured = 50_000
)

// BenchmarkServerMemory measures the resident memory of servers, in megabytes: just after the
// start, after each of the workloads has run for a second, and again a minute later. It also
// measures a server in which 8 clients have created 50,000 tables, and the time from a start until
// the server is ready. One iteration is enough (-benchtime 1x).
func BenchmarkServerMemory(b *testing.B) {
	binary := servers.Build(b)
	for b.Loop() {
		var starts []float64
		for range startsMeasured {
			began := time.Now()
			server, process := startBinary(b, binary)
			starts = append(starts, float64(time.Since(began).Microseconds())/1000)
			if server.request(b, "GET", "/v1/config", ""); len(starts) == startsMeasured {
				b.ReportMetric(residentMB(b, process.Process.Pid), "idle-MB")
			}
			server.stop()
		}
		b.ReportMetric(median(starts), "start-ms")

		all := workloads()
		server, process := startBinary(b, binary)
		mixed := newWorked(b, server, process, all[len(all)-1].tables)
		for _, load := range all {
			mixed.work(b, load)
		}
		b.ReportMetric(residentMB(b, process.Process.Pid), "mixed-MB")
		<-time.After(time.Minute)
		b.ReportMetric(residentMB(b, process.Process.Pid), "later-MB")
		server.stop()

		server, process = startBinary(b, binary)
		creates := newWorked(b, server, process, 0)
		for made := 0.0; made < createsMeasured && !b.Failed(); {
			made += creates.work(b, all[0])
		}
		b.ReportMetric(residentMB(b, process.Process.Pid), "creates-MB")
		server.stop()
	}
	b.ReportMetric(0, "ns/op")
}

// residentMB returns the resident memory of a process, in megabytes.
func residentMB(b testing.TB, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		b.Fatalf("memory in %s: %v", text, err)
	}
	return float64(resident*os.Getpagesize()) / 1e6
}
