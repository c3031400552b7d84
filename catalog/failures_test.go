package catalog_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// Some mistakes in an update, a schema or a name show only in the middle of the work. The request
// is then refused with that mistake, and changes nothing.
func TestRefusedInTheMidst(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	elsewhere := ident("new")
	elsewhere.Warehouse = "another"
	for name, try := range map[string]func() error{
		"commit": func() error {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"set-current-schema","schema-id":7}]`))
			return err
		},
		"commit that creates": func() error {
			_, err := f.Commit(f.Ctx, ident("new"), catalogkit.CommitRequest(t, `[{"type":"assert-create"}]`, `[{"action":"set-current-schema","schema-id":7}]`))
			return err
		},
		"create": func() error {
			_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(`{"type":"struct","fields":[{"id":1}]}`)})
			return err
		},
		"stage": func() error {
			_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(`{"type":"struct","fields":[{"id":1}]}`), Stage: true})
			return err
		},
		"stage what is there": func() error {
			_, err := f.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
			return err
		},
		"rename to another warehouse": func() error { return f.RenameTable(f.Ctx, ident("t"), elsewhere) },
	} {
		if err := try(); err == nil || moorage.KindOf(err) == moorage.KindInternal || moorage.KindOf(err) == moorage.KindCommitUnknown {
			t.Errorf("%s: answered %v, want what it was refused for", name, err)
		}
	}
	if got := count(f, gate.Commit); got != 0 {
		t.Errorf("%d commits, want none", got)
	}
	catalogkit.WantKind(t, f.TableExists(f.Ctx, ident("new")), moorage.KindNoSuchTable)
	must(t, f.TableExists(f.Ctx, ident("t")))
	f.WantClean()
}

// Once armed, fewRandom serves left more calls, fails the next one, and serves all calls after it.
type fewRandom struct {
	inner io.Reader
	armed atomic.Bool
	left  atomic.Int32
}

var errNoChance = errors.New("no chance")

func (r *fewRandom) Read(p []byte) (int, error) {
	if r.armed.Load() && r.left.Add(-1) == -1 {
		return 0, errNoChance
	}
	return r.inner.Read(p)
}

// A mutation that fails to draw one of its random IDs changes nothing, and its error reports that.
func TestMutationsWithoutChance(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		if m.operation == gate.Purge || m.operation == gate.EndWindow { // a worker logs the error and tries again later
			continue
		}
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			for k := int32(0); ; k++ {
				random := new(fewRandom)
				f, unregistered := newCrashFixture(t, m.operation, func(c *catalog.Config) { random.inner, c.Random = c.Random, random })
				m := mutations(t, unregistered)[n]
				random.left.Store(k)
				random.armed.Store(true)
				_, err := m.run(f.Ctx, f.Instance)
				random.armed.Store(false)
				if random.left.Load() >= 0 {
					must(t, err)
					return
				}
				if !errors.Is(err, errNoChance) || m.happened(f.Ctx, f.Instance) {
					t.Errorf("draw %d: answered %v, and happened is %t", k, err, m.happened(f.Ctx, f.Instance))
				}
				f.WantClean()
			}
		})
	}
}

// A call that only reads or stages returns every error of the store, whether or not the node has
// cached the path to the namespace.
func TestReadersAreToldOfTheStore(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	for name, read := range map[string]func(ctx context.Context, c catalog.Verbs) error{
		"table":  func(ctx context.Context, c catalog.Verbs) error { _, err := c.LoadTable(ctx, ident("t")); return err },
		"exists": func(ctx context.Context, c catalog.Verbs) error { return c.TableExists(ctx, ident("t")) },
		"namespace": func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, ns)
			return err
		},
		"tables": func(ctx context.Context, c catalog.Verbs) error {
			_, _, err := c.ListTables(ctx, catalogkit.Warehouse, ns, moorage.Page{})
			return err
		},
		"namespaces": func(ctx context.Context, c catalog.Verbs) error {
			_, _, err := c.ListNamespaces(ctx, catalogkit.Warehouse, nil, moorage.Page{})
			return err
		},
		"stage": func(ctx context.Context, c catalog.Verbs) error {
			_, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
			return err
		},
	} {
		for _, known := range []bool{false, true} {
			for k := 0; ; k++ {
				f := catalogkit.New(t)
				f.Create("t")
				var at int
				faulty := registrytest.Faulty(f.Store, func(call int, _ string) registrytest.Action {
					if call == at {
						return registrytest.Fail
					}
					return registrytest.Pass
				})
				node := f.Other(faulty)
				at = -1
				if known {
					must(t, read(f.Ctx, node))
				}
				at = faulty.Calls() + k
				err := read(f.Ctx, node)
				if faulty.Calls() <= at {
					must(t, err)
					break
				}
				if moorage.KindOf(err) != moorage.KindUnavailable {
					t.Errorf("%s, known %t, call %d: answered %v, want %s", name, known, k, err, moorage.KindUnavailable)
				}
			}
		}
	}
}

// A drop in progress is not taken for dead because its namespace is old. Creators wait for it, and
// then give up.
func TestDropOfAnOldNamespaceIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		f.Clock.Advance(2 * directory.DroppingStale)
		ns := moorage.Namespace{"ns"}
		must(t, f.MarkDropping(f.Ctx, ns))
		_, err := f.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
	})
}

// Once armed, betweenStore calls between one time, before the n-th Apply.
type betweenStore struct {
	registry.Store
	n       int
	between func()
}

func (s *betweenStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if between := s.between; between != nil {
		if s.n--; s.n < 0 {
			s.between = nil
			between()
		}
	}
	return s.Store.Apply(ctx, batch)
}

// If a blocker changes while Retry removes it, Retry reads it again. The blocker is gone when Retry
// returns.
func TestRetryOfABlockerThatChanges(t *testing.T) {
	t.Parallel()
	f, _ := newUndeletable(t)
	entry := abandon(f, "t")
	giveUp(f, entry)
	store := &betweenStore{Store: f.Store, between: func() { giveUp(f, entry) }}
	config := f.Config
	config.Store = store
	node, err := catalogkit.NewInstance(config)
	must(t, err)
	if _, err := node.Recovery().Retry(f.Ctx, entry.ID.String()); err != nil {
		t.Error(err)
	}
	records, err := f.Ledger.Get(f.Ctx, registry.TaskKey(entry.ID))
	if err != nil || records[0].Exists() {
		t.Errorf("the blocker stays (%v), so that no worker tries", err)
	}
}

// Setting properties to their present values changes nothing.
func TestPropertiesThatAreSoAlready(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	before := count(f, gate.UpdateProperties)
	_, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Removals: []string{"none"}})
	must(t, err)
	if got := count(f, gate.UpdateProperties) - before; got != 0 {
		t.Errorf("%d changes, want none", got)
	}
}
