package management

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/gate"
	"moorage/internal/web"
	"moorage/maintenance/leases"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// fakeLeases answers in the way of fake.
type fakeLeases struct{ *fake }

var granted = leases.Granted{ID: leases.ID{Pointer: leases.Table{1}, Token: 41}}

func (f fakeLeases) find(context.Context, moorage.Caller, moorage.Identifier) (leases.Table, string, error) {
	return leases.Table{1}, "u", f.call("Find")
}

func (f fakeLeases) Take(context.Context, moorage.Caller, leases.Request) (leases.Granted, error) {
	return granted, f.call("Take")
}

func (f fakeLeases) Renew(_ context.Context, _ moorage.Caller, ids []leases.ID) ([]leases.Granted, []leases.ID, error) {
	return []leases.Granted{granted}, ids, f.call("Renew")
}

func (f fakeLeases) Release(context.Context, moorage.Caller, leases.ID, leases.Others) error {
	return f.call("Release")
}

func (f fakeLeases) ReleaseHolder(context.Context, moorage.Caller, string) (int, error) {
	return 2, f.call("ReleaseHolder")
}

func (f fakeLeases) List(_ context.Context, _ leases.Filter, after string, limit int) ([]leases.Granted, string, error) {
	return []leases.Granted{granted}, f.next, f.call("List", moorage.Page{After: after, Limit: limit})
}

// leasing returns a server that keeps leases in memory. Its only table is main.a.t.
func leasing(t *testing.T, authorizer gate.Authorizer) http.Handler {
	t.Helper()
	store := memory.NewWithClock(rand.NewChaCha8([32]byte{1}), func() time.Time { return time.Unix(1_800_000_000, 0) })
	find := func(_ context.Context, _ moorage.Caller, ident moorage.Identifier) (leases.Table, string, error) {
		if ident.String() != "a.t" || ident.Warehouse != "main" {
			return leases.Table{}, "", moorage.Errorf(moorage.KindNoSuchTable, "no")
		}
		return leases.Table{0xa1}, "u-1", nil
	}
	return newServer(t, Config{Recovery: &fake{}, Purges: &fake{}, Leases: leases.New(registrytest.Ledger(store)), FindTable: find, Gate: authorizer})
}

const (
	askedLease = `{"warehouse":"main","namespace":["a"],"name":"t","holder":"spark 17","ttl-seconds":60}`
	leasePath  = base + "/leases"
)

// A lease is taken, listed, renewed and ended.
func TestLeases(t *testing.T) {
	t.Parallel()
	h := leasing(t, nil)
	w := send(h, "POST", leasePath, askedLease)
	var lease client.Lease
	if err := json.Unmarshal(w.Body.Bytes(), &lease); err != nil || w.Code != 200 || lease.TableUUID != "u-1" || lease.Token != 1 ||
		lease.Lease != "a1000000000000000000000000000000-1" || lease.Expires.Sub(lease.Since) != time.Minute {
		t.Fatalf("%d %s (%v)", w.Code, w.Body, err)
	}
	w = send(h, "POST", leasePath, strings.Replace(askedLease, "spark 17", "duckdb", 1))
	wantFailure(t, w, 409, "AlreadyExistsException")
	if body := w.Body.String(); !strings.Contains(body, "spark 17 has * until") {
		t.Errorf("the holder is not named: %s", body)
	}
	w = send(h, "PUT", leasePath, `{"leases":["`+lease.Lease+`","a1000000000000000000000000000000-9"]}`)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"lost":["a1000000000000000000000000000000-9"]`) {
		t.Errorf("%d %s", w.Code, body)
	}
	if w = send(h, "GET", leasePath, ""); !strings.Contains(w.Body.String(), lease.Lease) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range 2 {
		if w = send(h, "DELETE", leasePath+"/"+lease.Lease, ""); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	for _, want := range []string{`{"released":1}`, `{"released":0}`} {
		if want == `{"released":1}` {
			send(h, "POST", leasePath, askedLease)
		}
		if w = send(h, "DELETE", leasePath+"?holder=spark+17", ""); w.Body.String() != want {
			t.Errorf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
}

// The gate is asked about the table in a request for a lease. For a malformed request it is asked
// without a table.
func TestLeaseGate(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{askedLease: "a.t", `{"name":"b"}`: ""} {
		closed := &closedGate{}
		w := send(leasing(t, closed), "POST", leasePath, body)
		wantFailure(t, w, web.FailureOf(moorage.KindForbidden).Status, "ForbiddenException")
		if len(closed.asked) != 1 || closed.asked[0].Verb != gate.TakeLease || closed.asked[0].On[0].String() != want {
			t.Errorf("%s: the gate was asked %+v", body, closed.asked)
		}
	}
}

func TestLeasesRefuse(t *testing.T) {
	t.Parallel()
	h := leasing(t, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "", `{`, 400}, {"POST", "", `{}`, 400}, {"POST", "", `[]`, 400},
		{"POST", "", strings.Replace(askedLease, "60", "1", 1), 400},
		{"POST", "", strings.Replace(askedLease, "60", "1e3", 1), 400},
		{"POST", "", strings.Replace(askedLease, "60", "-60", 1), 400},
		{"POST", "", strings.Replace(askedLease, "60", "99999999999999999999", 1), 400},
		{"POST", "", strings.Replace(askedLease, "60", `"60"`, 1), 400},
		{"POST", "", strings.Replace(askedLease, `"holder"`, `"scope":"table","holder"`, 1), 400},
		{"POST", "", strings.Replace(askedLease, `"t"`, `"u"`, 1), 404},
		{"POST", "", strings.Replace(askedLease, `["a"]`, `[]`, 1), 400},
		{"PUT", "", `{}`, 400}, {"PUT", "", `{"leases":["41"]}`, 400}, {"PUT", "", `{"leases":[41]}`, 400},
		{"DELETE", "", ``, 400}, {"DELETE", "/41", ``, 400}, {"GET", "?table-id=41", ``, 400},
		{"GET", "?table-id=" + registry.ID{}.String(), ``, 400},
	} {
		if w := send(h, tt.method, leasePath+tt.path, tt.body); w.Code != tt.status {
			t.Errorf("%s %s %s: %d %s, want %d", tt.method, tt.path, tt.body, w.Code, w.Body, tt.status)
		}
	}
}

// operatorsGate gives the privilege operate only to "op".
type operatorsGate struct{ gate.Authorizer }

func (operatorsGate) Authorize(_ context.Context, request gate.Request) error {
	if request.Verb == gate.ListLeases && request.Caller.Name != "op" {
		return moorage.Errorf(moorage.KindForbidden, "no")
	}
	return nil
}

// An operator may end the leases of other callers, and can list only the leases of one holder or
// warehouse.
func TestOperatorsReleaseLeases(t *testing.T) {
	t.Parallel()
	store := memory.NewWithClock(rand.NewChaCha8([32]byte{1}), func() time.Time { return time.Unix(1_800_000_000, 0) })
	held := leases.New(registrytest.Ledger(store))
	var ids []leases.ID
	for n, warehouse := range []string{"main", "main", "other"} {
		pointer := registry.Pointer{ID: registry.ID{byte(n + 1)}, Warehouse: warehouse, Namespace: moorage.Namespace{"a"}, Name: "t"}
		value, err := registry.Encode(pointer)
		if err == nil {
			_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.PointerKey(pointer.ID), registry.StateLive, value)}})
		}
		if err != nil {
			t.Fatal(err)
		}
		granted, err := held.Take(t.Context(), moorage.Caller{Name: "ann"}, leases.Request{
			Pointer: pointer.ID, Scope: leases.ScopeAll, Holder: []string{"spark", "duckdb", "spark"}[n],
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, granted.ID)
	}
	as := func(caller string) http.Handler {
		served := newServer(t, Config{Recovery: &fake{}, Purges: &fake{}, Leases: held, Gate: operatorsGate{gate.AdmitAll()}})
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.ServeHTTP(w, r.WithContext(moorage.WithCaller(r.Context(), moorage.Caller{Name: caller})))
		})
	}
	for query, want := range map[string][]int{
		"": {0, 1, 2}, "?warehouse=main": {0, 1}, "?holder=spark": {0, 2}, "?warehouse=main&holder=spark": {0}, "?warehouse=none": {},
		"?table-id=" + registry.ID{3}.String() + "&pageSize=1": {2}, "?table-id=" + registry.ID{3}.String() + "&warehouse=main": {}, "?table-id=" + registry.ID{9}.String(): {},
	} {
		w := send(as("op"), "GET", leasePath+query, "")
		var page client.LeasesPage
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Leases) != len(want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
			continue
		}
		for i, at := range want {
			if page.Leases[i].Lease != ids[at].String() {
				t.Errorf("%s: %s is listed, want %s", query, page.Leases[i].Lease, ids[at])
			}
		}
	}
	wantFailure(t, send(as("bob"), "DELETE", leasePath+"/"+ids[0].String(), ""), 403, "ForbiddenException")
	for caller, id := range map[string]leases.ID{"op": ids[0], "ann": ids[1]} {
		if w := send(as(caller), "DELETE", leasePath+"/"+id.String(), ""); w.Code != 200 {
			t.Errorf("%s: %d %s", caller, w.Code, w.Body)
		}
	}
	if left, _, err := held.List(t.Context(), leases.Filter{}, "", 10); err != nil || len(left) != 1 || left[0].ID != ids[2] {
		t.Errorf("%+v are left, %v", left, err)
	}
}
