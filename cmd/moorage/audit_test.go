package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"moorage"
	"moorage/audit"
	"moorage/catalog/gate"
	"moorage/internal/cli"
)

// A server writes its audit log to a file. On SIGHUP it opens the file again.
func TestServeAudits(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "audit.log")
	s, process := startProcess(t, "--data", filepath.Join(folder, "data"), "--audit", path)
	s.request(t, http.MethodHead, "/v1/namespaces/first", "")
	awaitFile(t, path, `"operation":"load-namespace"`)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, path, "")
	s.request(t, http.MethodHead, "/v1/namespaces/second", "")
	if code := s.stop(); code != cli.ExitDone {
		t.Errorf("exit %d: %s", code, s.stderr)
	}
	awaitFile(t, path, `"namespace":["second"]`)
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "first") {
		t.Errorf("the new file holds %s: %v", text, err)
	}
}

// A node closes its audit log only when no other part can write a line any more.
func TestAuditLogClosesLast(t *testing.T) {
	t.Parallel()
	var written strings.Builder
	log := audit.New(audit.Config{Out: audit.Stream(&written), Jitter: newJitter()})
	log.Start()
	n := &node{audit: log}
	n.closers.add(func() error {
		log.Note(audit.Line{Operation: "late"})
		return nil
	})
	if err := n.close(); err != nil || !strings.Contains(written.String(), "late") {
		t.Errorf("%v; the log has %s", err, &written)
	}
}

// Servers that share a data folder each write an audit log of their own.
func TestAuditFileOfEachNode(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	config := cli.Config{Data: data, Store: "postgres://moorage@db/moorage", APIKeys: true}
	to := config.AuditTo()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var opened []audit.Out
	for _, want := range []string{"audit-" + host + ".log", "audit-" + host + "-2.log"} {
		file, path, err := openAuditFile(config, to)
		if err != nil || path != filepath.Join(data, want) {
			t.Fatalf("opened %q (%v), want %s", path, err, want)
		}
		opened = append(opened, file)
	}
	if err := errors.Join(opened[0].Close(), opened[1].Close()); err != nil {
		t.Fatal(err)
	}
	if _, path, err := openAuditFile(config, to); err != nil || path != filepath.Join(data, "audit-"+host+".log") {
		t.Errorf("after both have ended: %q (%v)", path, err)
	}

	config.Store, config.Audit = "", filepath.Join(data, "named.log")
	if _, _, err := openAuditFile(config, config.Audit); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openAuditFile(config, config.Audit); !errors.Is(err, audit.ErrClaimed) {
		t.Errorf("a second writer of --audit: %v, want ErrClaimed", err)
	}
}

// A request that ends while the node is closed still has its line.
func TestAuditClosesLast(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	config := cli.Config{Data: t.TempDir(), Store: "memory", Audit: path}
	node, err := openNode(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	node.audit.Start()
	node.closers.add(func() error {
		node.audit.Note(audit.Line{Event: audit.Decision, Operation: "drop-table", Caller: "late"})
		return nil
	})
	if err := node.close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"caller":"late"`) {
		t.Errorf("the log holds %q: %v", text, err)
	}
}

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// awaitFile waits until a file contains part.
func awaitFile(t *testing.T, path, part string) {
	t.Helper()
	eventually(t, path+" to hold "+part, func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), part)
	})
}

// brokenOut is an audit.Out that cannot write.
type brokenOut struct{ audit.Out }

func (brokenOut) Write([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// If a strict log cannot be written, every request is refused before it does anything. The test
// uses changes, because summed reads do not get a line each.
func TestStrictAuditRefuses(t *testing.T) {
	t.Parallel()
	log := audit.New(audit.Config{Out: brokenOut{audit.Stream(nil)}, Strict: true, LinesMax: 2, Jitter: newJitter()})
	log.Start()
	audited := newAudited(log)
	ready := withAudit(func(context.Context) error { return nil }, log)
	request := gate.Request{Caller: moorage.Anonymous(), Verb: gate.DropTable, On: []moorage.Identifier{{Name: "t"}}}
	done := 0
	for range 5 {
		err := gate.Pass(t.Context(), audited, request, func() error { done++; return nil })
		if done < 2 && err != nil || done == 2 && err != nil && moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("after %d: %v", done, err)
		}
	}
	if done != 2 {
		t.Errorf("%d requests were let in", done)
	}
	eventually(t, "the log to notice", func() bool { return ready(t.Context()) != nil })
	if notice := auditNotice(log); !strings.Contains(notice["audit"], "the disk is gone") {
		t.Errorf("the notice is %v", notice)
	}
}

// The lines of changes contain the created object, a new name, the snapshot, the outcome and the
// node.
func TestAuditNamesEffects(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	s := startServe(t, "--data", t.TempDir(), "--audit", path)
	s.makeTable(t)
	s.must(t, "POST", tablePath, `{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":4711,`+
		`"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"file:///none.avro","summary":{"operation":"append"},"schema-id":0}},`+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":4711}]}`)
	s.request(t, "GET", "/management/v1/rows?warehouse=default&namespace=harbour&table=ships", "") // 409
	s.request(t, "POST", "/v1/tables/rename", `{"source":{"namespace":["harbour"],"name":"ships"},"destination":{"namespace":["harbour"],"name":"boats"}}`)
	s.request(t, "POST", tablePath, setOwner) // 404
	s.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`"name":"ships","id":"([0-9a-f]{32})"`).FindStringSubmatch(string(text))
	if id == nil {
		t.Fatalf("no line has the id of the table:\n%s", text)
	}
	for _, want := range []string{
		`"operation":"create-table".*"outcome":"done","commit":"[0-9a-f]+","effects":\[{"kind":"table","warehouse":"default","namespace":\["harbour"\],"name":"ships","id":"` + id[1] + `"}\],"node":".+:\d+"}`,
		`"operation":"commit-table".*"outcome":"done",.*"effects":\[{"kind":"table",.*"id":"` + id[1] + `","snapshot":4711}\]`,
		`"operation":"rename-table".*"outcome":"done",.*"effects":\[{"kind":"table",.*"name":"boats","id":"` + id[1] + `","was":"harbour.ships"`,
		`"operation":"read-rows","object":{"kind":"table",.*"name":"ships"}.*"status":409`,
		`"operation":"commit-table".*"status":404,"outcome":"failed","node"`,
	} {
		if len(regexp.MustCompile(want).FindAllString(string(text), -1)) != 1 {
			t.Errorf("no line, or more than one, is as %s:\n%s", want, text)
		}
	}
}
