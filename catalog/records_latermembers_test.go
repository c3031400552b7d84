package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// newerStore is a store as used by a later version too: it adds an unknown member to every new
// record. It fails the test if a write of this version removes such a member.
type newerStore struct {
	registry.Store
	t *testing.T

	mu      sync.Mutex // held for a read and the write after it; leaf
	rewrote map[registry.Table]int
}

const laterMember = `"later":`

// laterOf returns the member added to the record at key.
func laterOf(key registry.Key) string { return laterMember + fmt.Sprintf("%q", key.String()) }

func (s *newerStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	later := batch
	later.Writes = nil
	rewritten := map[registry.Table]int{}
	for _, write := range batch.Writes {
		if !write.Delete {
			there, err := s.Get(ctx, write.Key)
			if err != nil {
				return nil, err
			}
			if there[0].Exists() {
				rewritten[write.Key.Table]++
			}
			write.Value = s.withLater(write, there[0])
		}
		later.Writes = append(later.Writes, write)
	}
	etags, err := s.Store.Apply(ctx, later)
	if err == nil {
		for table, count := range rewritten {
			s.rewrote[table] += count
		}
	}
	return etags, err
}

// undeleting is a store that deletes no records.
type undeleting struct{ registry.Store }

func (s undeleting) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if len(batch.Writes) > 0 && batch.Writes[0].Delete {
		return nil, registry.ErrFailed
	}
	return s.Store.Apply(ctx, batch)
}

// withLater returns the value that a later version would have written. It checks that this version
// keeps the members of the previous value.
func (s *newerStore) withLater(write registry.Write, there registry.Record) []byte {
	switch _, member, found := bytes.Cut(there.Value, []byte(laterMember)); {
	case there.Exists() && found:
		if want := append([]byte(laterMember), member[:bytes.IndexByte(member[1:], '"')+2]...); !bytes.Contains(write.Value, want) {
			s.t.Errorf("%s was written without %s:\n%s\nwas\n%s", write.Key, want, write.Value, there.Value)
		}
		return write.Value
	case bytes.Contains(write.Value, []byte(laterMember)): // copied from another record
		return write.Value
	}
	members := strings.TrimSuffix(strings.TrimPrefix(string(write.Value), "{"), "}")
	if members != "" {
		members += ","
	}
	return []byte("{" + members + laterOf(write.Key) + "}")
}

func newLaterFixture(t *testing.T) (*catalogkit.Fixture, *newerStore) {
	t.Helper()
	store := &newerStore{t: t, rewrote: map[registry.Table]int{}}
	f := catalogkit.New(t, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	return f, store
}

// succeed fails the test on the first error.
func succeed(t *testing.T, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
}

// TestLaterMembersSurviveOperations carries out every operation that replaces a record.
func TestLaterMembersSurviveOperations(t *testing.T) {
	t.Parallel()
	f, store := newLaterFixture(t)
	commit := func(name, updates string) {
		t.Helper()
		_, err := f.Commit(f.Ctx, ident(name), catalogkit.CommitRequest(t, `[]`, updates))
		succeed(t, err)
	}
	f.Create("a")
	f.Create("b")
	f.Create("c")
	commit("a", `[{"action":"set-properties","updates":{"x":"1"}}]`)
	commit("a", `[{"action":"set-location","location":"file:///wh/ns/elsewhere"}]`)
	succeed(t, f.Transact(
		catalog.TableChange{Ident: ident("b"), CommitRequest: catalogkit.SetProperty(t, "x", "1")}, catalog.TableChange{Ident: ident("c"), CommitRequest: catalogkit.SetProperty(t, "x", "1")},
	))
	_, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, catalog.PropertiesChange{Updates: map[string]string{"x": "1"}})
	succeed(t, err)

	// A name that is given to another table, and one that is reused by its table.
	succeed(t, f.RenameTable(f.Ctx, ident("c"), ident("d")))
	entries, err := f.Store.List(f.Ctx, registry.TableEntry, "", "", 100)
	succeed(t, err)
	for _, entry := range entries {
		if name := entry.Key.ID[strings.LastIndexByte(entry.Key.ID, '/')+1:]; name == "d" && !bytes.Contains(entry.Value, []byte(`/c"`)) {
			t.Errorf("the entry of a renamed table lost a member: %s", entry.Value)
		}
	}
	table, err := f.LoadTable(f.Ctx, ident("b"))
	succeed(t, err, f.DropTable(f.Ctx, ident("b"), catalog.DropOptions{}))
	_, err = f.RegisterTable(f.Ctx, ident("d"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
	succeed(t, err)

	// A location that is reused by another table.
	succeed(t, f.DropTable(f.Ctx, ident("d"), catalog.DropOptions{}))
	f.CreateAt("e", table.Document.Location())
	succeed(t, f.DropTable(f.Ctx, ident("e"), catalog.DropOptions{}))
	f.CreateAt("g", table.Document.Location())

	// Containers that are not empty are marked, and the mark is removed.
	catalogkit.WantKind(t, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}), moorage.KindNamespaceNotEmpty)
	catalogkit.WantKind(t, f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse), moorage.KindNamespaceNotEmpty)

	// Folders.
	f.CreateAt("h", "file:///wh/folder/h")
	_, err = f.UnregisterTable(f.Ctx, ident("h"))
	succeed(t, err)
	f.ClearTombstones()
	if f.Other(undeleting{f.Store}).SweepFolders(f.Ctx) == nil {
		t.Error("the folder is gone, and not marked only")
	}
	f.CreateAt("i", "file:///wh/folder/i")

	for _, table := range []registry.Table{
		registry.TableWarehouse, registry.TableNamespace, registry.TableEntry, registry.TablePointer, registry.TableUUID, registry.TableLocation, registry.TableTombstone,
	} {
		if store.rewrote[table] == 0 {
			t.Errorf("no record of %s was written twice", table)
		}
	}
	f.WantClean()
}

// TestLaterMembersSurviveWorkers makes the workers and an operator rewrite existing tasks,
// transactions and pointers.
func TestLaterMembersSurviveWorkers(t *testing.T) {
	t.Parallel()
	f, store := newLaterFixture(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.Create(name)
	}
	succeed(t, f.DropTable(f.Ctx, ident("a"), catalog.DropOptions{Purge: true}))
	tasks, err := f.Store.List(f.Ctx, registry.TableTask, "", "", 100)
	succeed(t, err)
	task, err := registry.DecodeTask(tasks[0])
	succeed(t, err)
	records, err := f.Store.Get(f.Ctx, registry.PointerKey(task.Pointer))
	succeed(t, err)
	pointer, err := ledger.Decode[registry.Pointer](records[0])
	succeed(t, err, f.Files.Delete(f.Ctx, pointer.MetadataLocation), f.Files.Create(f.Ctx, pointer.MetadataLocation, []byte("{")),
		f.PurgeAll(f.Ctx)) // records a failure

	entry := abandon(f, "b")
	entry, err = f.Transactions.Extend(f.Ctx, entryOf(f, entry.ID), entry.Participants, []string{"file:///wh/ns/b/metadata/later.metadata.json"})
	succeed(t, err)
	_, err = f.Transactions.Abort(f.Ctx, entry)
	succeed(t, err)

	succeed(t, f.DropTable(f.Ctx, ident("c"), catalog.DropOptions{Purge: true}))
	_, err = recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now())
	succeed(t, err)
	succeed(t, f.DropTable(f.Ctx, ident("d"), catalog.DropOptions{Purge: true}), f.PurgeAll(f.Ctx))

	for _, table := range []registry.Table{registry.TablePointer, registry.TableTask, registry.TableTransaction} {
		if store.rewrote[table] == 0 {
			t.Errorf("no record of %s was written twice", table)
		}
	}
}

// entryOf reads a transaction.
func entryOf(f *catalogkit.Fixture, id registry.ID) txlog.Entry {
	f.T.Helper()
	entry, found, err := f.Transactions.Get(f.Ctx, id)
	if err != nil || !found {
		f.T.Fatalf("transaction %s: found %v, %v", id, found, err)
	}
	return entry
}
