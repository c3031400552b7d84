package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/testkit/servers"
)

// workload is a kind of request that clients send to a server, each client over its own connection.
type workload struct {
	name    string
	clients int
	// tables is the number of tables before the clients begin.
	tables int
	// request returns a request of a client. serial is the number of the request at the server,
	// from 1.
	request func(client, serial int) []byte
}

// transactionTables is the number of tables in a transaction of the workloads.
const transactionTables = 10

// workloads returns the workloads of BenchmarkServerFormer. Tables are called ships0, ships1, …
func workloads() []workload {
	return []workload{
		{"create", 8, 0, func(_, serial int) []byte {
			return requestOf("POST", "/v1/namespaces/harbour/tables", tableBody(fmt.Sprintf("new%07d", serial)))
		}},
		{"commits of 300 tables", 16, 300, func(_, serial int) []byte {
			return requestOf("POST", fmt.Sprintf("/v1/namespaces/harbour/tables/ships%d", serial%300),
				`{"requirements":[],"updates":`+newProperty(serial)+`}`)
		}},
		{"transactions", 8, 8 * transactionTables, func(client, serial int) []byte {
			var changes []string
			for i := range transactionTables {
				changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["harbour"],"name":"ships%d"},"requirements":[],"updates":%s}`,
					client*transactionTables+i, newProperty(serial)))
			}
			return requestOf("POST", "/v1/transactions/commit", `{"table-changes":[`+strings.Join(changes, ",")+`]}`)
		}},
		{"list", 8, 2500, func(int, int) []byte {
			return requestOf("GET", "/v1/namespaces/harbour/tables?pageToken=&pageSize=1000", "")
		}},
	}
}

func newProperty(serial int) string {
	return fmt.Sprintf(`[{"action":"set-properties","updates":{"at":"%d"}}]`, serial)
}

// tableBody returns the request body that creates a table whose metadata does not grow with
// commits.
func tableBody(name string) string {
	return strings.TrimSuffix(strings.Replace(createTable, `"ships"`, strconv.Quote(name), 1), "}") +
		`,"properties":{"write.metadata.previous-versions-max":"1"}}`
}

func requestOf(method, path, body string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, len(body), body)
}

// worked is a server under a workload.
type worked struct {
	loaded
	serial atomic.Int64 // number of its requests
}

// newWorked prepares a server for a workload.
func newWorked(b *testing.B, server *served, process *exec.Cmd, tables int) *worked {
	b.Helper()
	server.request(b, "POST", "/v1/namespaces", createNamespace)
	var makers sync.WaitGroup
	var next atomic.Int64
	for range loadConnections {
		makers.Go(func() {
			for n := next.Add(1); n <= int64(tables); n = next.Add(1) {
				body := tableBody(fmt.Sprintf("ships%d", n-1))
				if code, answer := server.request(b, "POST", "/v1/namespaces/harbour/tables", body); code != http.StatusOK {
					b.Errorf("create table: %d %s", code, answer)
					return
				}
			}
		})
	}
	makers.Wait()
	return &worked{loaded: loaded{address: server.address(), pid: process.Process.Pid}}
}

// work lets clients send requests for loadTime, and returns the number of requests.
func (w *worked) work(b *testing.B, load workload) float64 {
	b.Helper()
	return w.ask(b, load.clients, func(client int, connection net.Conn) func(int) error {
		answers := bufio.NewReader(connection)
		return func(int) error {
			if _, err := connection.Write(load.request(client, int(w.serial.Add(1)))); err != nil {
				return err
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				return err
			}
			if answer.StatusCode >= http.StatusMultipleChoices {
				text, _ := io.ReadAll(answer.Body) // for the message
				return fmt.Errorf("answered %d %s", answer.StatusCode, text)
			}
			_, err = io.Copy(io.Discard, answer.Body)
			return err
		}
	})
}

// startBinary starts a server in the way that users start it, with a new embedded store.
func startBinary(b *testing.B, binary string) (*served, *exec.Cmd) {
	b.Helper()
	return startBinaryOver(b, binary, b.TempDir())
}

// startBinaryOver starts a server with the embedded store in data.
func startBinaryOver(b *testing.B, binary, data string, args ...string) (*served, *exec.Cmd) {
	b.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, args...)
	process := exec.CommandContext(b.Context(), binary, args...)
	return startReady(b, process), process
}

// formerCommit is the commit with which BenchmarkServerFormer compares this version.
const formerCommit = "eeeac2424c05141cbdbc35a279fbefb5b2825d41"

// BenchmarkServerFormer compares this version with formerCommit. Both are whole servers in separate
// processes, each with an embedded store and a warehouse on the disk of TMPDIR. They take turns,
// one turn of each in an iteration. The benchmark reports medians: requests a second, processor
// time for each request, and the ratios of this version's numbers to the former's.
//
// The clients are in this process and share the processors with the servers.
func BenchmarkServerFormer(b *testing.B) {
	former, present := buildCommit(b, formerCommit), servers.Build(b)
	for _, load := range workloads() {
		b.Run(load.name, func(b *testing.B) {
			server, process := startBinary(b, present)
			now := newWorked(b, server, process, load.tables)
			server, process = startBinary(b, former)
			before := newWorked(b, server, process, load.tables)
			compareWork(b, load, now, "former", before)
		})
	}
}

// compareWork lets two servers work in turns, and reports the medians of both and of their ratios.
// subject is the server in question. reference is the server with which it is compared, and name is
// the name of the reference.
func compareWork(b *testing.B, load workload, subject *worked, name string, reference *worked) {
	b.Helper()
	var rates, costs []float64
	for b.Loop() {
		reference.work(b, load)
		subject.work(b, load)
		rates = append(rates, last(subject.rates)/last(reference.rates))
		costs = append(costs, last(subject.costs)/last(reference.costs))
	}
	for label, server := range map[string]*worked{name: reference, "now": subject} {
		b.ReportMetric(median(server.rates), label+"-req/s")
		b.ReportMetric(median(server.costs), label+"-cpu-µs/req")
	}
	b.ReportMetric(median(rates), "rate-ratio")
	b.ReportMetric(median(costs), "cpu-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkServerProcessors compares a server in its default configuration with one that runs Go
// code in as many threads as there are processors. It works like BenchmarkServerFormer. With
// taskset it measures fewer processors.
func BenchmarkServerProcessors(b *testing.B) {
	binary := servers.Build(b)
	for _, load := range workloads()[:3] { // the workloads that wait for syncs
		b.Run(load.name, func(b *testing.B) {
			server, process := startBinary(b, binary)
			now := newWorked(b, server, process, load.tables)
			process = exec.CommandContext(b.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--data", b.TempDir())
			process.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(runtime.NumCPU()))
			compareWork(b, load, now, "usual", newWorked(b, startReady(b, process), process, load.tables))
		})
	}
}
