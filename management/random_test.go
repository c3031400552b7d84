package management

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/check"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/maintenance/purge"
	"moorage/management/client"
	"moorage/metadata"
	"moorage/recovery"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "seed of the random requests; 0: a new one each time")
	roundsFlag = flag.Int("rounds", 2, "on how many stores the random requests work, 500 requests each")
)

// requestsEach is the number of requests to each store.
const requestsEach = 500

// wholeServer is a server with a store and files in memory, and with every part of the API.
type wholeServer struct {
	http.Handler

	failed bytes.Buffer // the errors that it logged
}

// newWholeServer makes a server whose store draws ids from random. corp:root is its administrator.
func newWholeServer(t *testing.T, random io.Reader) *wholeServer {
	t.Helper()
	w := &wholeServer{}
	logger := slog.New(slog.NewTextHandler(&w.failed, &slog.HandlerOptions{Level: slog.LevelError}))
	kept := memoryregistry.New(random)
	guards := gate.New(gate.Config{Store: kept, Alone: true, Admins: []string{"corp:root"}})
	store := guards.Watch(kept)
	deps, files, locked := registrytest.LedgerDeps(ledger.Config{Store: store}), memorystorage.New(), locks.NewLocal(locks.LocalConfig{})
	made, err := catalog.New(catalog.Config{
		Deps: deps, Guard: guards, Locks: locked,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	})
	must(t, err)
	tables := made.As(moorage.System("expire")).Tables()
	asked := policy.New(deps.Ledger, nil)
	carried, err := jobs.New(jobs.Config{Deps: deps, Tables: tables})
	must(t, err)
	purges, err := purge.New(purge.Config{Deps: deps, Tables: made.Documents()})
	must(t, err)
	leased := leases.New(deps.Ledger)
	on := web.New(web.Config{Logger: logger, Authenticate: func(r *http.Request) (moorage.Caller, error) {
		return moorage.Caller{Name: r.Header.Get("Test-Caller")}, nil
	}})
	rest.Mount(on, rest.Config{Catalog: made})
	drawn := 0
	Mount(on, Config{
		Purges: purges, Recovery: recovery.New(recovery.Config{
			Deps: deps, Locks: locked, DeleteSurplus: made.DeleteSurplus, RetryPurge: purges.Retry,
		}),
		Check: check.New(check.Config{Deps: deps, Files: made.Documents()}).Check, Gate: guards,
		Backup: func(_ context.Context, name string) (client.Backup, error) { return client.Backup{Folder: name}, nil },
		Leases: leased, FindTable: made.Pointers().FindForLease,
		Work: leases.NewWork(leases.WorkConfig{
			Ledger: deps.Ledger, Leases: leased, Tables: tables, Find: made.Pointers().FindForLease,
			Rules: func(ctx context.Context, table registry.Pointer, document *metadata.Document, _ bool) (
				policy.Rules, []registry.Condition, error) {
				matcher, err := asked.Reload(ctx)
				if err != nil {
					return policy.Rules{}, nil, err
				}
				return policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties()), nil, nil
			},
		}),
		Versions: func(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) Versions {
			return made.For(caller, key, lease).(*catalog.Catalog)
		},
		Scopes:   func(caller moorage.Caller) policy.Scopes { return made.As(caller).Scopes() },
		Policies: asked, Jobs: carried,
		Steering:   &due.Control{Ledger: deps.Ledger, Policies: asked, Jobs: carried, Tables: tables},
		Access:     func(caller moorage.Caller) Access { return made.As(caller).Grants() },
		Warehouses: func(caller moorage.Caller) Warehouses { return made.As(caller).Warehouses() },
		Browse:     func(caller moorage.Caller) Browse { return made.As(caller).Browse() },
		Labels:     func(caller moorage.Caller, key *catalog.Key) Labels { return made.As(caller).Keyed(key).Labels() },
		Dropped:    func(caller moorage.Caller, key *catalog.Key) Dropped { return made.As(caller).Keyed(key).Dropped() },
		Protections: func(caller moorage.Caller, key *catalog.Key) Protections {
			return made.As(caller).Keyed(key).Protections()
		},
		Mirrors: func(caller moorage.Caller, key *catalog.Key) Mirrors { return made.As(caller).Keyed(key).Mirrors() },
		DrawKey: func(id string) (Drawn, error) {
			if drawn++; id == "" {
				id = fmt.Sprint("drawn", drawn)
			}
			return Drawn{ID: id, SHA256: sha256.Sum256(fmt.Append(nil, drawn)), Text: fmt.Sprint("text", drawn)}, nil
		},
		Authenticates: true, Admins: []string{"corp:root"},
	})
	w.Handler = on
	for _, made := range [][2]string{
		{"/management/v1/warehouses", `{"name":"w","location":"s3://lake/w"}`},
		{"/v1/w/namespaces", `{"namespace":["a"]}`},
		{"/v1/w/namespaces/a/tables", `{"name":"t","schema":` + oneColumn + `}`},
		{"/v1/w/namespaces/a/tables", `{"name":"u","schema":` + oneColumn + `}`},
	} {
		if _, answer := w.ask("corp:root", request{method: "POST", target: made[0], body: made[1]}); answer.Code != 200 {
			t.Fatalf("%s: %d %s", made[0], answer.Code, answer.Body)
		}
	}
	return w
}

// oneColumn is the schema of a table.
const oneColumn = `{"type":"struct","fields":[{"id":1,"name":"n","type":"long","required":false}]}`

var must = testkit.Must

// ask sends a request on behalf of caller.
func (w *wholeServer) ask(caller string, asked request) (*http.Request, *httptest.ResponseRecorder) {
	r := httptest.NewRequest(asked.method, "/", strings.NewReader(asked.body))
	path, query, _ := strings.Cut(asked.target, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path
	}
	r.URL = &url.URL{Path: decoded, RawPath: path, RawQuery: query}
	r.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i < len(asked.headers); i += 2 {
		r.Header.Set(asked.headers[i], asked.headers[i+1])
	}
	r.Header.Set("Test-Caller", caller)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return r, answer
}

// TestRandomRequests sends valid and invalid requests, drawn from openapi.yaml, to a whole server.
// No answer may be 5xx, and every answer must be as the file describes it. At the end the store
// must be sound. -seed repeats a run, and -rounds makes it longer.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	d := readDescription(t)
	operations := (&server{}).operations()
	answered, faults := make(map[string]int), make(map[string]string)
	for round := range *roundsFlag {
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		w := newWholeServer(t, rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed, round))))
		a := &asker{file: d.file, random: random, known: names()}
		caller := "corp:root"
		if round%2 == 1 { // in other rounds, a request may do so
			_, answer := w.ask(caller, request{method: "POST", target: base + "/access/enable"})
			if answer.Code != 200 {
				t.Fatalf("enable: %d %s", answer.Code, answer.Body)
			}
		}
		for range requestsEach {
			op := operations[random.IntN(len(operations))]
			a.wild = []float64{0, 0, 0.02, 0.1, 0.3}[random.IntN(5)]
			if caller = "corp:root"; random.IntN(10) == 0 {
				caller = "corp:ann"
			}
			asked := a.request(op, d.Operation(op.method, base+op.path))
			w.failed.Reset()
			r, answer := w.ask(caller, asked)
			if answer.Code == 200 {
				answered[op.id]++
				a.learn(answer.Body.Bytes())
			}
			err := d.fault(r, answer)
			if answer.Code < 500 && err == nil {
				continue
			}
			kind := fmt.Sprint(op.id, " ", answer.Code, " ", number.ReplaceAllString(moorage.Cut(w.failed.String(), 300), ""))
			if faults[kind] == "" {
				faults[kind] = fmt.Sprintf("%s %s %s by %s: %d %s: %v\n%s", asked.method, moorage.Cut(asked.target, 500),
					moorage.Cut(asked.body, 500), caller, answer.Code, moorage.Cut(answer.Body.String(), 500), err,
					moorage.Cut(w.failed.String(), 1000))
			}
		}
		_, answer := w.ask("corp:root", request{method: "GET", target: base + "/doctor?deep=true&pageSize=1000"})
		if !strings.Contains(answer.Body.String(), `: no problems`) {
			t.Errorf("round %d ends with %s", round, answer.Body)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(faults)) {
		t.Errorf("%s", faults[kind])
	}
	for _, op := range operations {
		if answered[op.id] == 0 {
			t.Logf("%s never succeeded", op.id)
		}
	}
	if t.Failed() {
		t.Logf("repeat it with -seed %d -rounds %d", seed, *roundsFlag)
	}
}

// number matches the parts in which log lines of one kind differ.
var number = regexp.MustCompile(`time=\S+|[A-Z]{10}-\d+|\d+|x{10,}`)

// learn remembers the ids in an answer, for use in later requests.
func (a *asker) learn(body []byte) {
	var answer struct {
		Lease, Job string
		Jobs       []struct{ ID string }
	}
	if json.Unmarshal(body, &answer) != nil {
		return
	}
	for _, job := range append(answer.Jobs, struct{ ID string }{answer.Job}) {
		if job.ID != "" {
			a.known["id"], a.known["job"] = append(a.known["id"], job.ID), append(a.known["job"], job.ID)
		}
	}
	if answer.Lease != "" {
		a.known["lease"], a.known["leases"] = append(a.known["lease"], answer.Lease), append(a.known["leases"], answer.Lease)
	}
}

// If a body or query contains a name that no record can have, that is the caller's fault, not the
// server's.
func TestImpossibleNames(t *testing.T) {
	t.Parallel()
	w := newWholeServer(t, rand.NewChaCha8([32]byte{1}))
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/maintenance/adopt", `{"warehouse":"NAME"}`},
		{"POST", "/leases", `{"warehouse":"NAME","namespace":["a"],"name":"t","holder":"h"}`},
		{"POST", "/leases", `{"warehouse":"w","namespace":["NAME"],"name":"t","holder":"h"}`},
		{"POST", "/leases", `{"warehouse":"w","namespace":["a"],"name":"NAME","holder":"h"}`},
		{"POST", "/leases", `{"warehouse":"w","namespace":["a"],"name":"t","holder":"NAME"}`},
		{"POST", "/work", `{"kinds":["compaction"],"holder":"NAME"}`},
		{"POST", "/maintenance/pause", `{"reason":"x","object":{"warehouse":"NAME","namespace":["a"],"table":"t"}}`},
		{"POST", "/maintenance/plan", `{"kind":"orphans","object":{"warehouse":"NAME"}}`},
		{"POST", "/maintenance/run", `{"kind":"snapshots","object":{"warehouse":"NAME","namespace":["a"],"table":"t"}}`},
		{"PUT", "/maintenance/policies/icebergCompaction?warehouse=NAME&namespace=a&table=t", `{"status":"enabled"}`},
		{"GET", "/maintenance/status?warehouse=NAME&namespace=a", ""},
		{"POST", "/warehouses", `{"name":"NAME","location":"s3://lake/x"}`},
	} {
		for _, name := range []string{"", strings.Repeat("x", 1025), strings.Repeat("x", registry.KeyBytesMax+1), strings.Repeat("x", 3000)} {
			asked := request{
				method: tt.method, target: base + strings.Replace(tt.path, "NAME", name, 1), body: strings.Replace(tt.body, "NAME", name, 1),
			}
			if _, answer := w.ask("corp:root", asked); answer.Code != 400 && answer.Code != 404 {
				t.Errorf("%s %s %s with a name of %d bytes: %d %s", tt.method, tt.path, tt.body, len(name), answer.Code, answer.Body)
			}
		}
	}
}

// A warehouse in a folder has no storage options: neither a create nor a change stores one.
func TestOptionsOfFolders(t *testing.T) {
	t.Parallel()
	w := newWholeServer(t, rand.NewChaCha8([32]byte{1}))
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/warehouses", `{"name":"f","location":"file:///lake/f","storage":{"s3.region":"x"}}`, 400},
		{"POST", "/warehouses", `{"name":"f","location":"file:///lake/f"}`, 200},
		{"PATCH", "/warehouses/f", `{"storage":{"":"x"}}`, 400},
		{"PATCH", "/warehouses/f", `{"storage":{"s3.region":"x"}}`, 400},
		{"PATCH", "/warehouses/f", `{"storage":{"s3.region":null}}`, 200},
	} {
		_, answer := w.ask("corp:root", request{method: tt.method, target: base + tt.path, body: tt.body})
		if answer.Code != tt.want {
			t.Errorf("%s %s %s: %d %s, want %d", tt.method, tt.path, tt.body, answer.Code, answer.Body, tt.want)
		}
	}
}

// A table that is created again after a drop gets a new default folder, even without access
// control.
func TestTableMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWholeServer(t, rand.NewChaCha8([32]byte{1}))
	const tables = "/v1/w/namespaces/a/tables"
	made := request{method: "POST", target: tables, body: `{"name":"again","schema":` + oneColumn + `}`}
	var locations []string
	for range 2 {
		_, answer := w.ask("corp:root", made)
		var table struct{ Metadata struct{ Location string } }
		if err := json.Unmarshal(answer.Body.Bytes(), &table); answer.Code != 200 || err != nil {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		locations = append(locations, table.Metadata.Location)
		w.ask("corp:root", request{method: "DELETE", target: tables + "/again"})
	}
	if again := locations[0] + "-"; !strings.HasPrefix(locations[1], again) || len(locations[1]) != len(again)+8 {
		t.Errorf("the tables are at %q, want the second beside the first, with a suffix", locations)
	}
}
