package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/internal/certtest"
	"moorage/internal/cli"
)

// metric returns the sum of the samples of a metric that a server shows, whose labels hold labels.
func (s *served) metric(t testing.TB, name, labels string) (sum float64) {
	t.Helper()
	_, text := s.request(t, "GET", "/metrics", "")
	for _, sample := range regexp.MustCompile(`(?m)^`+name+`(\{\S*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(sample[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(sample[1], labels) {
			sum += value
		}
	}
	return sum
}

// awaitMembers waits until all servers see as many members as there are servers.
func awaitMembers(t testing.TB, servers []*served) {
	t.Helper()
	ended := time.Now().Add(patience)
	for _, s := range servers {
		for s.metric(t, "moorage_cluster_members", "") != float64(len(servers)) {
			if time.Now().After(ended) {
				t.Fatalf("the cluster is not complete; stderr:\n%s", s.stderr)
			}
			time.Sleep(20 * time.Millisecond) // only paces the questions
		}
	}
}

// startNodes starts n servers over one new database, with the extra flags of each.
func startNodes(t *testing.T, n int, flags func() []string) []*served {
	t.Helper()
	store, data := startPostgres(t).DSN(), t.TempDir()
	var servers []*served
	for range n {
		servers = append(servers, startServe(t, append([]string{"--store", store, "--data", data, "--migrate"}, flags()...)...))
	}
	return servers
}

// setProperties returns a commit that needs nothing and sets one property.
func setProperties(key, value string) string {
	return fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{%q:%q}}]}`, key, value)
}

// hammer commits to one table over all servers, with so many clients each, and returns how many
// commits were refused.
func hammer(t *testing.T, servers []*served, clients, commits int) (refused int) {
	t.Helper()
	var mu sync.Mutex // guards refused; leaf
	var all sync.WaitGroup
	for n, s := range servers {
		for client := range clients {
			all.Go(func() {
				for i := range commits {
					key := fmt.Sprintf("n%d.c%d", n, client)
					if code, body := s.request(t, "POST", tablePath, setProperties(key, strconv.Itoa(i))); code != http.StatusOK {
						t.Errorf("commit %s=%d: %d %s", key, i, code, body)
						mu.Lock()
						refused++
						mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	return refused
}

// Three nodes commit to one table. With routing they lose far fewer races, and no commit is lost.
func TestRoutingSavesRaces(t *testing.T) {
	t.Parallel()
	const clients, commits = 4, 25
	lost := map[string]float64{}
	authority := certtest.New(t)
	for name, flags := range map[string]func() []string{
		"alone":  func() []string { return nil },
		"routed": func() []string { return authority.Flags(t) },
	} {
		servers := startNodes(t, 3, flags)
		if name == "routed" {
			awaitMembers(t, servers)
		}
		servers[0].makeTable(t)
		for _, s := range servers { // so that each knows the name
			s.request(t, "GET", tablePath, "")
		}
		hammer(t, servers, clients, commits)
		_, loaded := servers[0].request(t, "GET", tablePath, "")
		forwarded := 0.0
		for n, s := range servers {
			lost[name] += s.metric(t, "moorage_commit_races_lost_total", "")
			forwarded += s.metric(t, "moorage_forwarded_total", `result="answered"`)
			for client := range clients {
				if want := fmt.Sprintf(`"n%d.c%d":"%d"`, n, client, commits-1); !strings.Contains(loaded, want) {
					t.Errorf("%s: the table does not have %s", name, want)
				}
			}
		}
		if (forwarded > 0) != (name == "routed") {
			t.Errorf("%s: %.0f commits were forwarded", name, forwarded)
		}
		t.Logf("%s: %.0f races lost, %.0f commits of %d forwarded", name, lost[name], forwarded, 3*clients*commits)
	}
	if lost["routed"]*2 > lost["alone"] {
		t.Errorf("races lost: %.0f with routing, %.0f without, want at most half", lost["routed"], lost["alone"])
	}
}

// A part of the settings of a peer listener is refused, and so is one without other nodes.
func TestPeerSettings(t *testing.T) {
	t.Parallel()
	const store = "postgres://localhost/x"
	for want, args := range map[string][]string{
		"--peer-cert, --peer-key and --peer-ca are needed": {"--store", store, "--peer-listen", "127.0.0.1:0", "--peer-cert", "a"},
		"go with --peer-listen":                            {"--store", store, "--peer-ca", "c"},
		"no other nodes":                                   {"--peer-listen", "127.0.0.1:0", "--peer-cert", "a", "--peer-key", "b", "--peer-ca", "c"},
		"say with --peer-address":                          {"--store", store, "--peer-listen", ":8182", "--peer-cert", "a", "--peer-key", "b", "--peer-ca", "c"},
	} {
		if got := runToEnd(t, append([]string{"serve"}, args...)...); got.code != cli.ExitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}
