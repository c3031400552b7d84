package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moorage/internal/cli"
)

// hangAt is an environment variable with a folder. In a process of startHanging, all calls on this
// folder hang from the start.
const hangAt = "TEST_HANG_AT"

// hangFolders makes every call on some folders hang, as on a mount whose server is gone. Calls on
// the folder in hangAt hang at once. Further folders are read from standard input, one on each
// line, and hang from then on. An empty line makes all calls fail. Each folder gets a file system
// whose server, this process, never answers.
func hangFolders() {
	var held []int
	hang := func(folder string) {
		device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		if err == nil {
			options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)
			err = syscall.Mount("hang", folder, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "this test must be allowed to mount FUSE in a user namespace:", err)
			os.Exit(1)
		}
		held = append(held, device)
		fmt.Fprintln(os.Stderr, "hangs:", folder)
	}
	if folder := os.Getenv(hangAt); folder != "" {
		hang(folder)
	}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if folder := lines.Text(); folder != "" {
				hang(folder)
				continue
			}
			for _, device := range held {
				_ = syscall.Close(device)
			}
		}
	}()
}

// hanging is a server for which some folders hang.
type hanging struct {
	*served
	process *exec.Cmd
	orders  io.Writer
}

// startHanging starts a server in a mount namespace of its own. If folder is not empty, that folder
// hangs there.
func startHanging(t *testing.T, folder string, args ...string) *hanging {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	process.Env = append(os.Environ(), asCommand+"="+asHanging, hangAt+"="+folder)
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	orders, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &hanging{startReady(t, process), process, orders}
}

// hang makes a folder hang from now on.
func (h *hanging) hang(t *testing.T, folder string) {
	t.Helper()
	if _, err := fmt.Fprintln(h.orders, folder); err != nil {
		t.Fatal(err)
	}
	h.awaitLog(t, "hangs: "+folder)
}

// threads returns the number of threads of the server.
func (h *hanging) threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nThreads:\t")
	var n int
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	stuckTable = "/v1/stuck/namespaces/harbour/tables/ships"
	boatsTable = "/v1/stuck/namespaces/harbour/tables/boats"
	lakeTable  = "/v1/lake/namespaces/harbour/tables/ships"
)

// makeWarehouses makes a store with the warehouses stuck and lake, and a table in each. It returns
// the flags for a server, and the folder of stuck.
func makeWarehouses(t *testing.T) (flags []string, stuck string) {
	t.Helper()
	folder := t.TempDir()
	flags = []string{"--data", filepath.Join(folder, "data")}
	stuck = filepath.Join(folder, "stuck")
	startServe(t, flags...).stop() // makes the store
	for _, name := range []string{"stuck", "lake"} {
		got := runToEnd(t, append([]string{"warehouse", "create", name, "--location", "file://" + filepath.Join(folder, name)}, flags...)...)
		if got.code != cli.ExitDone {
			t.Fatalf("%+v", got)
		}
	}
	s := startServe(t, flags...)
	for _, name := range []string{"stuck", "lake"} {
		s.must(t, "POST", "/v1/"+name+"/namespaces", createNamespace)
		s.must(t, "POST", "/v1/"+name+"/namespaces/harbour/tables", createTable)
	}
	s.stop()
	return flags, stuck
}

// must sends a request that must succeed.
func (s *served) must(t *testing.T, method, path, body string) string {
	t.Helper()
	code, answer := s.request(t, method, path, body)
	if code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// use uses the warehouse that does not hang. It tries that a few times, because the machine itself
// may be slow. Each commit changes the table, because a commit without effect writes no file.
func (h *hanging) use(t *testing.T) {
	t.Helper()
	const most = 5 * time.Second
	var took []time.Duration
	for len(took) == 0 || len(took) < 4 && slices.Min(took) > most {
		began := time.Now()
		h.must(t, "GET", "/v1/lake/namespaces", "")
		h.must(t, "GET", "/v1/lake/namespaces/harbour/tables", "")
		h.must(t, "GET", lakeTable, "")
		h.must(t, "POST", lakeTable, setProperties("used", began.Format(time.RFC3339Nano)))
		took = append(took, time.Since(began))
	}
	if slices.Min(took) > most {
		t.Errorf("the other warehouse answered after %s", took)
	}
}

const setOwner = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"owner":"crew"}}]}`

// flood sends many requests for a table, and soon gives up each of them. It returns the number of
// answers by status.
func (h *hanging) flood(t *testing.T, requests int, table string) map[int]int {
	t.Helper()
	var mu sync.Mutex
	answers := make(map[int]int)
	var next atomic.Int64
	var clients sync.WaitGroup
	client := &http.Client{Timeout: 100 * time.Millisecond}
	for range 100 {
		clients.Go(func() {
			for n := next.Add(1); n <= int64(requests); n = next.Add(1) {
				method, body := "GET", ""
				if n%2 == 0 {
					method, body = "POST", setOwner
				}
				request, err := http.NewRequestWithContext(context.Background(), method, h.uri+table, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				code := 0
				if response, err := client.Do(request); err == nil {
					code = response.StatusCode
					_ = response.Body.Close()
				}
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return answers
}

// threadsMore is the number of additional threads that a server may have because of one hanging
// warehouse: the limit of its storage, and some more.
const threadsMore = 128 + 40

// TestStartsWhileAWarehouseHangs starts a server while every call on the folder of a warehouse
// hangs.
func TestStartsWhileAWarehouseHangs(t *testing.T) {
	t.Parallel()
	flags, stuck := makeWarehouses(t)
	h := startHanging(t, stuck, flags...)
	h.use(t)
	h.awaitLog(t, "the storage of a warehouse fails: ")
	if log := h.stderr.String(); !strings.Contains(log, "warehouse=stuck") || strings.Contains(log, "warehouse=lake") {
		t.Errorf("log:\n%s", log)
	}
	before := h.threads(t)
	for method, body := range map[string]string{"GET": "", "POST": setOwner} {
		if code, answer := h.request(t, method, stuckTable, body); code != http.StatusServiceUnavailable {
			t.Errorf("%s of the table that hangs: %d %s", method, code, answer)
		}
	}
	h.must(t, "GET", "/v1/stuck/namespaces", "") // this needs no file
	if answers := h.flood(t, 3000, stuckTable); answers[http.StatusOK] > 0 {
		t.Errorf("answers %v", answers)
	}
	if more := h.threads(t) - before; more > threadsMore {
		t.Errorf("%d threads more than before", more)
	}
	h.use(t)
	began := time.Now()
	if code := h.stop(); code != cli.ExitDone || time.Since(began) > time.Minute {
		t.Errorf("stopped after %s, exit code %d:\n%s", time.Since(began), code, h.stderr)
	}
}

// TestWarehouseThatBeginsToHang makes the folder of a table hang while the server runs, and then
// makes it answer again.
func TestWarehouseThatBeginsToHang(t *testing.T) {
	t.Parallel()
	flags, stuck := makeWarehouses(t)
	h := startHanging(t, "", flags...)
	h.use(t)
	h.must(t, "POST", "/v1/stuck/namespaces/harbour/tables", strings.Replace(createTable, "ships", "boats", 1))
	before := h.threads(t)
	h.hang(t, filepath.Join(stuck, "harbour"))
	h.must(t, "GET", boatsTable, "") // the document is in memory
	if code, answer := h.request(t, "GET", stuckTable, ""); code != http.StatusServiceUnavailable {
		t.Errorf("load of the table that hangs: %d %s", code, answer)
	}
	if answers := h.flood(t, 3000, stuckTable); answers[http.StatusOK] > 0 {
		t.Errorf("answers %v", answers)
	}
	if more := h.threads(t) - before; more > threadsMore {
		t.Errorf("%d threads more than before", more)
	}
	h.use(t)
	if _, err := fmt.Fprintln(h.orders); err != nil { // every call fails from now on
		t.Fatal(err)
	}
	h.use(t)
	h.must(t, "GET", boatsTable, "")
	if code := h.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d:\n%s", code, h.stderr)
	}
}
