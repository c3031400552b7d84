//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/testkit"
	"moorage/testkit/manytables"
)

var (
	consoleTables = flag.Int("console-tables", 2000, "how many tables TestConsoleMany shows")
	consoleBounds = flag.Bool("console-bounds", false, "ask for each page 100 times, and fail beyond the bounds for a million tables")
)

// The bounds of TestConsoleMany: of the 99th percentile of a page, and of the memory of the server
// after all pages, in percent of the memory before.
const (
	consolePageMax   = 100 * time.Millisecond
	consoleMemoryMax = 110
)

// consolePage is a page of the console, with a text that it has. The token NS in both stands for
// the namespace in the middle.
type consolePage struct {
	name, path, text string
	isLast           bool // the last page of the list that begins at path
	needs            bool // more rights than a reader has
}

const nameOfNothing = "a name that is not there"

// consolePages are the pages of TestConsoleMany. Tables of the demo are in the middle namespace.
func consolePages() []consolePage {
	const of = "?warehouse=default&namespace=NS"
	return []consolePage{
		{name: "overview", path: "", text: "Last changes"},
		{name: "warehouses", path: "/warehouses", text: "default"},
		{name: "warehouse", path: "/warehouse?warehouse=default", text: "About", needs: true},
		{name: "namespaces", path: "/browse?warehouse=default", text: "ns"},
		{name: "last namespaces", path: "/browse?warehouse=default", text: "ns", isLast: true},
		{name: "tables", path: "/browse" + of, text: "orders_daily_0_"},
		{name: "last tables", path: "/browse" + of, text: "voyages", isLast: true},
		{name: "tables by prefix", path: "/browse" + of + "&prefix=voy", text: "voyages"},
		{name: "search, one letter", path: "/search?q=o", text: "Search"},
		{name: "search, many", path: "/search?q=orders&all=yes", text: "Search"},
		{name: "search, few", path: "/search?q=NS+voyages", text: "voyages"},
		{name: "search, none", path: "/search?q=nothing+like+it", text: "No name"},
		{name: "changes", path: "/changes", text: "Changes"},
		{name: "earlier changes", path: "/changes?older=900", text: "Changes"},
		{name: "changes by a caller", path: "/changes?caller=nobody", text: "Changes"},
		{name: "changes of a namespace", path: "/changes" + of, text: "Changes"},
		{name: "changes since a time", path: "/changes?since=1h", text: "Changes"},
		{name: "dropped", path: "/dropped?warehouse=default", text: "Dropped"},
		{name: "last dropped", path: "/dropped?warehouse=default", text: "Dropped", isLast: true},
		{name: "dropped in a namespace", path: "/dropped" + of, text: "gone_daily"},
		{name: "operations", path: "/operations", text: "Findings", needs: true},
		{name: "cluster", path: "/cluster", text: "this node", needs: true},
		{name: "access", path: "/principals", text: "Access", needs: true},
		{name: "access to a warehouse", path: "/grants?warehouse=default", text: "Access"},
		{name: "API", path: "/api", text: "/management/v1/objects"},
		{name: "table", path: "/table" + of + "&table=voyages", text: "voyages"},
		{name: "table, deep", path: "/table" + of + "&table=voyages&deep=yes", text: "voyages"},
		{name: "rows", path: "/table/rows" + of + "&table=voyages", text: "voyages"},
		{name: "history", path: "/table/history" + of + "&table=ships", text: "ships"},
		{name: "snapshots", path: "/table/snapshots" + of + "&table=voyages", text: "voyages"},
		{name: "maintenance", path: "/table/maintenance" + of + "&table=voyages", text: "voyages"},
		{name: "access to a table", path: "/grants" + of + "&table=voyages", text: "voyages"},
		{name: "metadata", path: "/table/metadata" + of + "&table=voyages", text: "voyages"},
		{name: "view", path: "/view" + of + "&view=busiest", text: "busiest"},
		{name: nameOfNothing, path: "/table" + of + "&table=nothing", text: "nothing"},
	}
}

// TestConsoleMany asks for the pages of the console of a server with many tables: without access
// control, as an administrator, and as a principal that sees one namespace in 1,000. Make target
// console-million asks with a million, within bounds for time and memory.
func TestConsoleMany(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if code := startDemo(t, "--data", data, "--listen", "127.0.0.1:0").stop(); code != cli.ExitDone {
		t.Fatalf("the demo ended with %d", code)
	}
	store, err := openStore(t.Context(), cli.Config{Data: data}, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	began := time.Now()
	filled := manytables.Fill(t, store, defaultWarehouse, *consoleTables)
	testkit.Must(t, store.Close())
	t.Logf("%d tables in %d namespaces, written in %s", filled.TablesEach*filled.Namespaces, filled.Namespaces,
		time.Since(began).Round(time.Second))
	middle := manytables.Namespace(filled.Namespaces / 2)

	s := startMany(t, "--data", data)
	for name, kind := range map[string]string{"voyages": "tables", "ships": "tables", "busiest": "views"} {
		body := `{"source":{"namespace":["harbour"],"name":"` + name + `"},` +
			`"destination":{"namespace":["` + middle + `"],"name":"` + name + `"}}`
		if code, answer := s.request(t, "POST", "/v1/"+kind+"/rename", body); code != http.StatusNoContent {
			t.Fatalf("rename %s: %d %s", name, code, answer)
		}
	}
	s.visit("every caller", newBrowser(t, s.uri), middle, consolePages())
	s.stop()

	root := newKey(t, "root", "--admin", "--data", data)
	s = startMany(t, "--data", data, "--keys")
	s.as = root
	command := func(args ...string) string {
		got := runToEnd(t, append(args, "--uri", s.uri, "--token", root)...)
		if got.code != cli.ExitDone {
			t.Fatalf("%s: %+v", args, got)
		}
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		return lines[len(lines)-1]
	}
	reader := command("key", "create", "reader")
	command("grant", "describe", "on", "warehouse", "default", "to", "key:root")
	command("grant", "read", "on", "namespace", "default."+middle, "to", "key:reader")
	s.visit("an administrator", s.signedIn(root), middle, consolePages())
	pages := slices.DeleteFunc(consolePages(), func(p consolePage) bool { return p.needs })
	s.visit("a reader of one namespace", s.signedIn(reader), middle, pages)
}

// manyServer is a server with many tables, in a process of its own.
type manyServer struct {
	*served
	t     *testing.T
	as    string // a key, if the server wants one
	debug string // address of the port of --debug-listen
	pid   int
}

func startMany(t *testing.T, args ...string) *manyServer {
	t.Helper()
	s, process := startProcess(t, append(args, "--debug-listen", "127.0.0.1:0")...)
	s.awaitLog(t, `msg=ready`) // stderr may arrive later than stdout
	found := debugLine.FindStringSubmatch(s.stderr.String())
	if found == nil {
		t.Fatalf("no port for profiles:\n%s", s.stderr)
	}
	return &manyServer{served: s, t: t, debug: found[1], pid: process.Process.Pid}
}

// signedIn returns a browser with a session of the principal of a key.
func (s *manyServer) signedIn(key string) *browser {
	s.t.Helper()
	b := newBrowser(s.t, s.uri)
	if answer, text := b.send("/login", url.Values{"credential": {key}, "back": {"/console"}}); answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s\n%s", answer.Status, text)
	}
	return b
}

var heapLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// memory returns what is live on the heap of the server, and what memory of the machine it has.
func (s *manyServer) memory() (heapMB, machineMB float64) {
	s.t.Helper()
	answer, err := http.Get(s.debug + "/debug/pprof/heap?gc=1&debug=1")
	_, text := newBrowser(s.t, s.uri).read(answer, err)
	found := heapLine.FindStringSubmatch(text)
	if found == nil {
		s.t.Fatalf("a profile without the size of the heap:\n%.1000s", text)
	}
	bytes, err := strconv.Atoi(found[1])
	testkit.Must(s.t, err)
	return float64(bytes) / 1e6, residentMB(s.t, s.pid)
}

// processorTime returns how long the server has used processors.
func (s *manyServer) processorTime() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	testkit.Must(s.t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	user, err := strconv.Atoi(fields[12])
	testkit.Must(s.t, err)
	system, err := strconv.Atoi(fields[13])
	testkit.Must(s.t, err)
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel counts in hundredths of a second
}

// use asks the API for what clients without the console ask for: every name, a search, counts.
func (s *manyServer) use() {
	s.t.Helper()
	ask := func(path string, query url.Values) string {
		code, answer := s.request(s.t, "GET", "/management/v1"+path+"?"+query.Encode(), "", s.authorization()...)
		if code != http.StatusOK {
			s.t.Fatalf("%s: %d %s", path, code, answer)
		}
		return answer
	}
	query := url.Values{"warehouse": {"default"}, "recursive": {"true"}, "pageSize": {"1000"}}
	for more := true; more; {
		var page client.ObjectsPage
		testkit.Must(s.t, json.Unmarshal([]byte(ask("/objects", query)), &page))
		query.Set("pageToken", page.Next())
		more = page.Next() != ""
	}
	ask("/search", url.Values{"q": {"orders"}})
	ask("/warehouses/default/stats", url.Values{"max-age": {"0s"}})
}

func (s *manyServer) authorization() []string {
	if s.as == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + s.as}
}

// visit asks for pages as a visitor, and judges the time of each and the memory of the server.
func (s *manyServer) visit(visitor string, b *browser, middle string, pages []consolePage) {
	s.t.Helper()
	startHeap, startMachine := s.memory()
	s.use()
	heap, machine := s.memory()
	s.t.Logf("%s: heap %.1f MB and %.1f MB of the machine at the start, %.1f and %.1f MB after listing, searching and counting",
		visitor, startHeap, startMachine, heap, machine)
	for _, p := range pages {
		p.path, p.text = strings.ReplaceAll(p.path, "NS", middle), strings.ReplaceAll(p.text, "NS", middle)
		s.measure(visitor, b, p)
	}
	heapAfter, machineAfter := s.memory()
	s.t.Logf("%s: heap %.1f MB and %.1f MB of the machine after all pages: %.1f %% and %.1f %% of before", visitor, heapAfter,
		machineAfter, 100*heapAfter/heap, 100*machineAfter/machine)
	if *consoleBounds && 100*heapAfter/heap > consoleMemoryMax {
		s.t.Errorf("%s: the heap grew beyond %d %%", visitor, consoleMemoryMax)
	}
}

var nextLink = regexp.MustCompile(`<a [^>]*href="([^"]+)"[^>]* rel="next"|<a [^>]*rel="next"[^>]* href="([^"]+)"`)

// measure asks for a page several times, one after the other.
func (s *manyServer) measure(visitor string, b *browser, p consolePage) {
	s.t.Helper()
	times := 3
	if *consoleBounds {
		times = 100
	}
	address := s.uri + "/console" + p.path
	for p.isLast {
		_, text := b.open(address)
		found := nextLink.FindStringSubmatch(text)
		if found == nil {
			break
		}
		address = s.uri + html.UnescapeString(found[1]+found[2])
	}
	var took []time.Duration
	used := s.processorTime()
	for range times {
		began := time.Now()
		answer, text := b.open(address)
		took = append(took, time.Since(began))
		want := http.StatusOK
		if p.name == nameOfNothing {
			want = http.StatusNotFound
		}
		if answer.StatusCode != want || !strings.Contains(text, p.text) {
			s.t.Errorf("%s: %s: %s lacks %s:\n%s", visitor, p.name, answer.Status, p.text, text)
			return
		}
	}
	used = (s.processorTime() - used) / time.Duration(times)
	first := took[0]
	slices.Sort(took)
	p99 := took[times*99/100]
	const digits = 10 * time.Microsecond
	s.t.Logf("%s: %s: first %s, median %s, p99 %s; processor time %s", visitor, p.name, first.Round(digits),
		took[times/2].Round(digits), p99.Round(digits), used.Round(digits))
	if *consoleBounds && p99 > consolePageMax {
		s.t.Errorf("%s: %s: beyond %s", visitor, p.name, consolePageMax)
	}
}
