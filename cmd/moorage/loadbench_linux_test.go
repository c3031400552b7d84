package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moorage/testkit/servers"
)

const (
	loadConnections = 8
	loadTime        = time.Second // duration of the load on one server in each round
)

// BenchmarkServerLoad compares loads from a server with a net/http handler that sends one prepared
// answer. Each runs in a separate process: the server in its default configuration, and the handler
// with Go's defaults. They take turns, one turn of each in an iteration. The benchmark reports
// medians: requests a second, processor time for each request, and the share, which is Moorage's
// rate divided by the handler's.
//
// The clients are in this process and share the processors with the servers. The clients cost the
// same for both, which brings the share closer to 1. The ratio of the processor times does not have
// this flaw.
func BenchmarkServerLoad(b *testing.B) {
	binary := servers.Build(b)
	for _, tables := range []int{1, 300} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) { benchmarkLoads(b, binary, tables) })
	}
}

func benchmarkLoads(b *testing.B, binary string, tables int) {
	moorage, process := startBinary(b, binary)
	loads := prepareLoads(b, moorage, tables, "", "")
	handler, handlerProcess := startStatic(b, loads[0].answer)
	of := map[string]*loaded{
		"moorage": {address: moorage.address(), pid: process.Process.Pid},
		"handler": {address: handler.address(), pid: handlerProcess.Process.Pid},
	}
	var clients, shares []float64
	for b.Loop() {
		client := cpuOf(b, os.Getpid())
		requests := of["handler"].askLoads(b, loads) + of["moorage"].askLoads(b, loads)
		clients = append(clients, float64((cpuOf(b, os.Getpid())-client).Microseconds())/requests)
		shares = append(shares, last(of["moorage"].rates)/last(of["handler"].rates))
	}
	for name, server := range of {
		b.ReportMetric(median(server.rates), name+"-req/s")
		b.ReportMetric(median(server.costs), name+"-cpu-µs/req")
	}
	b.ReportMetric(median(clients), "client-cpu-µs/req")
	b.ReportMetric(median(shares), "share")
	b.ReportMetric(0, "ns/op")
}

// preparedLoad is a request that loads a table, and the expected answer.
type preparedLoad struct {
	request []byte
	answer  []byte // all bytes of the answer
	bytes   int    // of the body
}

// prepareLoads creates the given number of tables, and returns a load of each. maker and loader are
// the credentials of the callers, or empty.
func prepareLoads(b *testing.B, server *served, tables int, maker, loader string) (loads []preparedLoad) {
	b.Helper()
	var makes []string
	shown := ""
	if maker != "" {
		makes, shown = []string{"Authorization", "Bearer " + maker}, "Authorization: Bearer "+loader+"\r\n"
	}
	server.request(b, "POST", "/v1/namespaces", createNamespace, makes...)
	for i := range tables {
		name := fmt.Sprintf("ships%03d", i)
		body := strings.Replace(createTable, `"ships"`, strconv.Quote(name), 1)
		if code, answer := server.request(b, "POST", "/v1/namespaces/harbour/tables", body, makes...); code != http.StatusOK {
			b.Fatalf("create table: %d %s", code, answer)
		}
		request := []byte("GET /v1/namespaces/harbour/tables/" + name + " HTTP/1.1\r\nHost: localhost\r\n" +
			"X-Iceberg-Access-Delegation: vended-credentials\r\nUser-Agent: benchmark\r\n" + shown + "\r\n")
		loads = append(loads, firstLoad(b, server, request))
	}
	return loads
}

// firstLoad sends a request once, and records the answer.
func firstLoad(b *testing.B, server *served, request []byte) preparedLoad {
	b.Helper()
	connection, err := net.Dial("tcp", server.address())
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Write(request); err != nil {
		b.Fatal(err)
	}
	var sent bytes.Buffer
	answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(connection, &sent)), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("load: %v, %v", answer, err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return preparedLoad{request, sent.Bytes(), len(body)}
}

// loaded is a server under load, with the results of the rounds so far.
type loaded struct {
	address string
	pid     int
	rates   []float64 // requests a second
	costs   []float64 // microseconds of processor time a request
}

// askLoads sends loads over loadConnections connections, and returns the number of requests.
func (l *loaded) askLoads(b *testing.B, loads []preparedLoad) float64 {
	b.Helper()
	return l.ask(b, loadConnections, func(client int, connection net.Conn) func(n int) error {
		buffer := make([]byte, 64<<10)
		return func(n int) error { return loads[(n+client)%len(loads)].send(connection, buffer) }
	})
}

// ask lets clients send requests for loadTime. Each client sends its next request after the answer
// to the previous one. begin returns a function that sends the n-th request of a client. ask
// returns the number of requests.
func (l *loaded) ask(b *testing.B, clients int, begin func(client int, connection net.Conn) func(n int) error) float64 {
	b.Helper()
	var asking []func(n int) error
	for client := range clients {
		connection, err := net.Dial("tcp", l.address)
		if err != nil {
			b.Fatal(err)
		}
		defer connection.Close()
		asking = append(asking, begin(client, connection))
	}
	before, began := cpuOf(b, l.pid), time.Now()
	var requests atomic.Int64
	var stop atomic.Bool
	timer := time.AfterFunc(loadTime, func() { stop.Store(true) })
	defer timer.Stop()
	var group sync.WaitGroup
	for _, ask := range asking {
		group.Go(func() {
			for n := 0; ; n++ {
				if stop.Load() {
					requests.Add(int64(n))
					return
				}
				if err := ask(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	elapsed, cost, total := time.Since(began), cpuOf(b, l.pid)-before, float64(requests.Load())
	l.rates = append(l.rates, total/elapsed.Seconds())
	l.costs = append(l.costs, float64(cost.Microseconds())/total)
	return total
}

// send sends the request and reads the answer. It checks only the status and the length.
func (p *preparedLoad) send(connection net.Conn, buffer []byte) error {
	if _, err := connection.Write(p.request); err != nil {
		return err
	}
	for have, want := 0, -1; have != want; {
		n, err := connection.Read(buffer[have:])
		if err != nil {
			return err
		}
		have += n
		if head := bytes.Index(buffer[:have], []byte("\r\n\r\n")); want < 0 && head >= 0 {
			want = head + len("\r\n\r\n") + p.bytes
		}
		if !bytes.HasPrefix(buffer[:have], []byte("HTTP/1.1 200 ")) || want >= 0 && have > want {
			return fmt.Errorf("the answer is %.200q", buffer[:have])
		}
	}
	return nil
}

// startStatic runs serveStatic in a separate process.
func startStatic(b *testing.B, answer []byte) (*served, *exec.Cmd) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "answer")
	if err := os.WriteFile(file, answer, 0o600); err != nil {
		b.Fatal(err)
	}
	process := exec.CommandContext(b.Context(), os.Args[0], file)
	process.Env = append(os.Environ(), asCommand+"="+asStatic)
	return startReady(b, process), process
}

// address returns the address at which the server listens.
func (s *served) address() string { return strings.TrimPrefix(s.uri, "http://") }

// ticksPerSecond is the unit of processor times in /proc, on every architecture that Go runs on.
const ticksPerSecond = 100

// cpuOf returns the processor time that a process has used.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	if pid == os.Getpid() {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The times are fields 12 and 13 after the name of the command, which may contain spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	if userErr != nil || systemErr != nil {
		b.Fatalf("processor times in %s: %v, %v", text, userErr, systemErr)
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

func last(values []float64) float64 { return values[len(values)-1] }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
