package rest_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/identity"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// The principals of a guarded world.
const (
	root  = "corp:root"  // created the warehouse and the namespaces
	maker = "corp:maker" // created the table a.t, the view a.v and the dropped objects
	other = "corp:other" // created the table a.u
	ann   = "corp:ann"   // created nothing
)

// guardedWorld is a server with a catalog whose access a guard controls. Access control is on from
// the first call of setPolicy.
type guardedWorld struct {
	http.Handler
	t       testing.TB
	store   registry.Store // the store to which the catalog writes
	catalog *catalog.Catalog
	guard   *gate.Guard
	decided []gate.Decision
	epoch   uint64
	granted []registry.Key // keys of the existing records of grants
	// generations has for names of principals how many had them who were deleted.
	generations map[string]uint64
}

// newGuardedWorld returns a world without a warehouse.
func newGuardedWorld(t testing.TB, files *memorystorage.Store) *guardedWorld {
	t.Helper()
	w := &guardedWorld{t: t}
	records := memoryregistry.New(rand.Reader)
	w.guard = gate.New(gate.Config{Store: records, Alone: true, Decided: w.note})
	w.store = w.guard.Watch(records)
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Guard: w.guard, Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) {
			within, err := files.Within(place.Roots)
			return vendingFiles{within}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.catalog = made
	server := web.New(web.Config{})
	rest.Mount(server, rest.Config{Catalog: made, Stages: trustingStages{}})
	mountManagement(server, w)
	w.Handler = server
	return w
}

// trustingStages uses the location of a staged table as its token.
type trustingStages struct{}

func (trustingStages) Token(_ context.Context, stage identity.Stage) (string, error) {
	return stage.Location, nil
}

func (trustingStages) Location(_ context.Context, token, _ string, _ moorage.Identifier) (string, error) {
	return token, nil
}

// callerNamed returns an authenticated caller.
func callerNamed(name string) moorage.Caller { return moorage.Caller{Name: name} }

// warehouse creates a warehouse on behalf of root.
func (w *guardedWorld) warehouse(name string, offers ...vending.Delegation) {
	w.t.Helper()
	spec := warehouses.Spec{Name: name, Location: "file:///lake/" + name, Delegation: offers}
	if _, err := w.catalog.As(callerNamed(root)).Warehouses().Create(w.t.Context(), spec); err != nil {
		w.t.Fatal(err)
	}
}

// do sends a request on behalf of caller. headers are alternating names and values.
func (w *guardedWorld) do(caller, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.URL, r.RemoteAddr = parseURL(w.t, path), "127.0.0.1:4711"
	r = r.WithContext(moorage.WithArrival(r.Context(), moorage.Arrival{From: "test", Caller: callerNamed(caller)}))
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// must is like do, for a request that must succeed.
func (w *guardedWorld) must(caller, method, path, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	answer := w.do(caller, method, path, body)
	if answer.Code > 299 {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, answer.Code, answer.Body)
	}
	return answer
}

// objects returns the path of every warehouse, namespace, table and view, including dropped ones.
// The keys are names: "w", "w/a", "w/a/b", "w/a/t".
func (w *guardedWorld) objects() map[string][]access.Object {
	w.t.Helper()
	found := make(map[string][]access.Object)
	byID := make(map[registry.ID]string)
	for _, record := range w.list(registry.TableWarehouse) {
		value := decode[registry.Warehouse](w.t, record)
		byID[value.ID] = record.Key.ID
		found[record.Key.ID] = []access.Object{{ID: access.ID(value.ID), Kind: access.Warehouse, Creator: value.Creator}}
	}
	for range moorage.NamespaceLevelsMax { // parents may follow their children in the list
		for _, record := range w.list(registry.TableNamespace) {
			value := decode[registry.Namespace](w.t, record)
			parent, name := parentOf(w.t, record.Key)
			above, known := byID[parent]
			if _, done := byID[value.ID]; known && !done {
				byID[value.ID] = above + "/" + name
				found[byID[value.ID]] = append([]access.Object{
					{ID: access.ID(value.ID), Kind: access.Namespace, Creator: value.Creator},
				}, found[above]...)
			}
		}
	}
	for _, record := range w.list(registry.TablePointer) {
		value := decode[registry.Pointer](w.t, record)
		above := byID[value.NamespaceID]
		object := access.Object{ID: access.ID(value.ID), Kind: access.Table, Creator: value.Creator}
		if value.View {
			object.Kind = access.View
		}
		found[above+"/"+value.Name] = append([]access.Object{object}, found[above]...)
	}
	return found
}

// shownTo returns objects in the form for decisions about caller: the creator of an object also
// sees the containers above it.
func shownTo(caller string, objects map[string][]access.Object) map[string][]access.Object {
	above := make(map[access.ID]bool)
	for _, path := range objects {
		if path[0].Creator != caller {
			continue
		}
		for _, container := range path[1:] {
			above[container.ID] = true
		}
	}
	shown := make(map[string][]access.Object, len(objects))
	for name, path := range objects {
		path = slices.Clone(path)
		for i := range path {
			path[i].OwnsInside = above[path[i].ID]
		}
		shown[name] = path
	}
	return shown
}

func (w *guardedWorld) list(table registry.Table) []registry.Record {
	w.t.Helper()
	records, err := w.store.List(w.t.Context(), table, "", "", registry.ListLimitMax)
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

func decode[V registry.Value](t testing.TB, record registry.Record) V {
	t.Helper()
	value, err := registry.Decode[V](record)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// parentOf returns the id of the parent and the name in the key of a namespace.
func parentOf(t testing.TB, key registry.Key) (parent registry.ID, name string) {
	t.Helper()
	parts := strings.SplitN(key.ID, "/", 3)
	if err := parent.UnmarshalText([]byte(parts[1])); err != nil {
		t.Fatal(err)
	}
	return parent, parts[2]
}

// setPolicy replaces all grants. It switches access control on.
func (w *guardedWorld) setPolicy(grants ...access.Grants) {
	w.t.Helper()
	var batch registry.Batch
	put := func(key registry.Key, value registry.Value) {
		encoded, err := registry.Encode(value)
		if err != nil {
			w.t.Fatal(err)
		}
		batch.Writes = append(batch.Writes, registry.Put(key, registry.StateNone, encoded))
	}
	if w.epoch == 0 {
		put(registry.AccessStoreKey(), registry.AccessStore{})
		w.epoch = 1
	}
	w.epoch++
	put(registry.EpochKey(), registry.Epoch{Number: w.epoch})
	put(registry.RecentKey(), registry.Recent{}) // so that the guard loads everything
	for name, generation := range w.generations {
		put(registry.PrincipalKey(name), registry.Principal{Generation: generation})
	}
	before := w.granted
	w.granted = nil
	for _, each := range grants {
		key := registry.GrantsKey(registry.ID(each.ID))
		record := registry.Grants{Kind: each.Kind.String(), Owner: each.Owner, Managed: each.Managed}
		for _, above := range each.Ancestors {
			record.Ancestors = append(record.Ancestors, registry.ID(above))
		}
		for _, grant := range each.Grants {
			record.Grants = append(record.Grants, registry.Grant{Grantee: grant.Grantee, Privileges: grant.Privileges.Words()})
		}
		put(key, record)
		w.granted = append(w.granted, key)
	}
	for _, key := range before {
		if !slices.Contains(w.granted, key) {
			batch.Writes = append(batch.Writes, registry.Delete(key))
		}
	}
	if _, err := w.store.Apply(w.t.Context(), batch); err != nil {
		w.t.Fatal(err)
	}
}

// grantsAt returns the record of one grant on the first object of path. An empty path means the
// server.
func grantsAt(path []access.Object, grantee string, privileges access.Privileges) access.Grants {
	record := access.Grants{Grants: []access.Grant{{Grantee: grantee, Privileges: privileges}}}
	if len(path) > 0 {
		record.ID, record.Kind = path[0].ID, path[0].Kind
		for _, above := range path[1:] {
			record.Ancestors = append(record.Ancestors, above.ID)
		}
	}
	return record
}

// note records a decision.
func (w *guardedWorld) note(_ context.Context, d gate.Decision) { w.decided = append(w.decided, d) }
