package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage/testkit/catalogkit"
)

var (
	transferTables = flag.Int("transfer-tables", 120, "how many tables TestTransferKilled imports")
	transferKills  = flag.Int("transfer-kills", 4, "how often TestTransferKilled kills the import")
)

// transferTime is about how long all runs that are killed may take together.
const transferTime = 40 * time.Minute

// linesIn returns the number of lines of a file; 0 if there is none.
func linesIn(file string) int {
	text, _ := os.ReadFile(file)
	return strings.Count(string(text), "\n")
}

// TestTransferKilled imports tables by a process that is killed again and again, and repeated with
// its journal. In the end the target has what the source has. make import-scale runs the long form.
func TestTransferKilled(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "source")
	source := startServe(t, "--data", folder)
	const namespaces = 20
	for i := range namespaces {
		source.created(t, "/v1/default/namespaces", fmt.Sprintf(`{"namespace":["n%d"],"properties":{"k":"%d"}}`, i, i))
	}
	began := time.Now()
	for i := range *transferTables {
		source.created(t, fmt.Sprintf("/v1/default/namespaces/n%d/tables", i%namespaces), fmt.Sprintf(
			`{"name":"t%d","schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`, i))
		if (i+1)%1000 == 0 {
			t.Logf("%d of %d tables made in %s", i+1, *transferTables, time.Since(began).Round(time.Second))
		}
	}
	target := startOver(t, folder)
	seed := catalogkit.NewSeed(t)
	random := rand.New(rand.NewPCG(seed, seed))
	journal := filepath.Join(t.TempDir(), "journal")
	args := []string{"import", "rest", source.uri, "--uri", target.uri, "--state", journal, "-o", "json"}
	pause, killed := 300*time.Millisecond, 0
	began = time.Now()
	for killed < *transferKills {
		if killed%10 == 0 {
			t.Logf("killed %d of %d times in %s: %d lines in the journal; the next runs have up to %s", killed, *transferKills,
				time.Since(began).Round(time.Second), linesIn(journal), pause.Round(time.Millisecond))
		}
		process := exec.CommandContext(t.Context(), os.Args[0], args...)
		process.Env = append(os.Environ(), asCommand+"="+asUsual)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(random.Int64N(int64(pause))), func() { _ = process.Process.Kill() })
		err := process.Wait()
		if kill.Stop() && err == nil { // it was faster: another run begins, and compares all
			pause = max(pause/2, 20*time.Millisecond)
		} else {
			pause += pause / 4
		}
		killed++
		// A machine that is slow gets no more time, but kills that come earlier in a run.
		left := transferTime - time.Since(began)
		pause = max(min(pause, 2*left/time.Duration(max(*transferKills-killed, 1))), 20*time.Millisecond)
	}
	whole := processToEnd(t, nil, args...)
	if whole.code != 0 {
		for line := range strings.Lines(whole.stdout) {
			if strings.Contains(line, `"why"`) {
				t.Error(line)
			}
		}
		t.Fatalf("the last run ended with %d: %s", whole.code, whole.stderr)
	}
	t.Logf("%d tables, killed %d times: %s", *transferTables, killed, time.Since(began).Round(time.Second))
	list := source.moved(t, 0, "export", "list").stdout
	if strings.Count(list, "\n") != *transferTables+1 || target.moved(t, 0, "export", "list").stdout != list {
		t.Error("the target does not have what the source has")
	}
}

// created sends a request that makes something.
func (s *served) created(t *testing.T, path, body string) {
	t.Helper()
	if status, answer := s.request(t, http.MethodPost, path, body); status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
}
