package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"moorage/internal/cli"
	"moorage/testkit/servers"
)

// buildReleased returns the oldest binary that may run together with this version. It is built from
// the commit that made the first release by adding a section to CHANGELOG.md. Before the first
// release, it is a second build of the present files.
func buildReleased(t testing.TB) string {
	t.Helper()
	history := exec.CommandContext(t.Context(), "git", "log", "--reverse", "--format=%H", "-G", `^## 0\.1\.0`, "--", "CHANGELOG.md")
	history.Dir = filepath.Join("..", "..")
	output, err := history.Output()
	if err != nil {
		t.Fatalf("the history of this repository is needed: %v", err)
	}
	first, _, _ := strings.Cut(string(output), "\n")
	if first == "" {
		return servers.Build(t)
	}
	return buildCommit(t, first)
}

// buildCommit returns the binary of a commit, built from the history of this repository. It builds
// each commit only once.
func buildCommit(t testing.TB, commit string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(root, ".cache", "former")
	binary := filepath.Join(cache, "moorage-"+commit)
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	// The source is not in the cache, and the binary gets its final name only when it is complete,
	// because several tests may build it at the same time.
	source := t.TempDir()
	built := filepath.Join(source, "moorage")
	for _, command := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "sh", "-c", "git archive "+commit+" | tar -x -C '"+source+"'"),
		exec.CommandContext(t.Context(), "go", "build", "-o", built, "./cmd/moorage"),
	} {
		if command.Dir = root; strings.HasSuffix(command.Path, "/go") {
			command.Dir, command.Env = source, append(os.Environ(), "CGO_ENABLED=0")
		}
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("build the binary of %s, for which the history of this repository is needed: %v\n%s", commit, err, output)
		}
	}
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // see writeProgram
	defer syscall.ForkLock.RUnlock()
	whole, err := os.CreateTemp(cache, "building-")
	if err != nil {
		t.Fatal(err)
	}
	_, err = whole.Write(program)
	for _, err := range []error{err, whole.Close(), os.Chmod(whole.Name(), 0o755), os.Rename(whole.Name(), binary)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return binary
}

// mixed is a cluster of two binaries on one database, with a record of all acknowledged changes.
type mixed struct {
	t      *testing.T
	binary string
	args   []string

	mu     sync.Mutex                 // guards the fields below; leaf
	number int                        // number of the last property
	told   map[string]map[string]bool // by table, the properties that were acknowledged
}

// startFormer starts the older binary.
func (m *mixed) startFormer() (*served, *exec.Cmd) {
	m.t.Helper()
	process := exec.CommandContext(m.t.Context(), m.binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, m.args...)...)
	return startReady(m.t, process), process
}

// create creates a table through a server.
func (m *mixed) create(through *served, table string) {
	m.t.Helper()
	body := strings.Replace(createTable, "ships", table, 1)
	if code, answer := through.request(m.t, "POST", "/v1/namespaces/harbour/tables", body); code != http.StatusOK {
		m.t.Fatalf("create %s: %d %s", table, code, answer)
	}
	m.told[table] = map[string]bool{}
}

// update returns an update that sets a property that no table has yet, and the name of the
// property.
func (m *mixed) update() (property, update string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	property = fmt.Sprintf("p%d", m.number)
	return property, fmt.Sprintf(`[{"action":"set-properties","updates":{%q:"x"}}]`, property)
}

func (m *mixed) note(property string, tables ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, table := range tables {
		m.told[table][property] = true
	}
}

// write commits to all tables through all servers at once: to each table alone, and to all together
// in a transaction, whose request with a key is sent twice.
func (m *mixed) write(servers ...*served) {
	m.t.Helper()
	var writers sync.WaitGroup
	tables := make([]string, 0, len(m.told))
	for table := range m.told {
		tables = append(tables, table)
	}
	for i, server := range servers {
		for _, table := range tables {
			writers.Go(func() {
				for range 3 {
					property, update := m.update()
					if code, answer := server.request(m.t, "POST", "/v1/namespaces/harbour/tables/"+table, `{"requirements":[],"updates":`+update+`}`); code != http.StatusOK {
						m.t.Errorf("commit to %s through server %d: %d %s", table, i, code, answer)
						continue
					}
					m.note(property, table)
				}
			})
		}
	}
	writers.Wait()
	for i, server := range servers {
		property, update := m.update()
		var changes []string
		for _, table := range tables {
			changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["harbour"],"name":%q},"requirements":[],"updates":%s}`, table, update))
		}
		body, key := `{"table-changes":[`+strings.Join(changes, ",")+`]}`, fmt.Sprintf("01912345-0000-7000-8000-%012d", m.number)
		for _, sent := range []*served{server, servers[0]} { // the second time to the first server
			if code, answer := sent.request(m.t, "POST", "/v1/transactions/commit", body, "Idempotency-Key", key); code != http.StatusNoContent {
				m.t.Errorf("transaction through server %d: %d %s", i, code, answer)
			}
		}
		m.note(property, tables...)
	}
}

// wantAll fails the test unless each server has everything that was acknowledged.
func (m *mixed) wantAll(servers ...*served) {
	m.t.Helper()
	for i, server := range servers {
		for table, properties := range m.told {
			code, answer := server.request(m.t, "GET", "/v1/namespaces/harbour/tables/"+table, "")
			if code != http.StatusOK {
				m.t.Errorf("load %s through server %d: %d %s", table, i, code, answer)
			}
			for property := range properties {
				if !strings.Contains(answer, fmt.Sprintf("%q:", property)) {
					m.t.Errorf("server %d lacks %s of %s, which was acknowledged", i, property, table)
				}
			}
		}
	}
}

// TestUpgradeAndRollBack runs this version and the oldest compatible binary on one database. It
// upgrades a cluster node by node, with crashes in between, and goes back to the older version.
func TestUpgradeAndRollBack(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	m := &mixed{t: t, binary: buildReleased(t), told: map[string]map[string]bool{}}
	m.args = []string{"--store", database.DSN(), "--data", t.TempDir(), "--migrate"}

	old, oldProcess := m.startFormer()
	if code, body := old.request(t, "POST", "/v1/namespaces", createNamespace); code != http.StatusOK {
		t.Fatalf("create namespace: %d %s", code, body)
	}
	m.create(old, "by-old")
	m.write(old)

	present, _ := startProcess(t, m.args...) // the new version migrates the database
	m.create(present, "by-new")
	m.create(old, "by-old-later")
	m.write(old, present)
	m.wantAll(old, present)

	kill(t, old, oldProcess) // a crash during the upgrade
	m.write(present)
	old, _ = m.startFormer()
	m.write(old, present)
	m.wantAll(old, present)

	// Go back to the older version.
	if code := present.stop(); code != cli.ExitDone {
		t.Errorf("the new server ended with %d:\n%s", code, present.stderr)
	}
	m.create(old, "by-old-alone")
	m.write(old)
	m.drop(old, "by-new")
	m.wantAll(old)

	// Upgrade again; this time a new node crashes too.
	present, process := startProcess(t, m.args...)
	m.write(present, old)
	kill(t, present, process)
	m.write(old)
	present, _ = startProcess(t, m.args...)
	m.write(old, present)
	m.drop(present, "by-old-later")
	m.wantAll(old, present)
	if code := old.stop(); code != cli.ExitDone {
		t.Errorf("the old server ended with %d:\n%s", code, old.stderr)
	}
	m.write(present)
	m.wantAll(present)
	if got := runToEnd(t, "doctor", "--deep", "--store", database.DSN()); got.code != cli.ExitDone || !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
	check := exec.CommandContext(t.Context(), m.binary, "doctor", "--deep", "--store", database.DSN())
	if output, err := check.CombinedOutput(); err != nil || !strings.Contains(string(output), "no problems") {
		t.Errorf("check by the old binary: %v\n%s", err, output)
	}
}

// drop drops a table and deletes its files.
func (m *mixed) drop(through *served, table string) {
	m.t.Helper()
	if code, answer := through.request(m.t, "DELETE", "/v1/namespaces/harbour/tables/"+table+"?purgeRequested=true", ""); code != http.StatusNoContent {
		m.t.Errorf("drop %s: %d %s", table, code, answer)
	}
	delete(m.told, table)
}

// kill ends a server abruptly, like a crash.
func kill(t *testing.T, server *served, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	server.wait()
}
