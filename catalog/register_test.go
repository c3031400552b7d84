package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// If a registered file has been rewritten and is registered again, every node reads it again.
func TestRegisterReadsTheFileAgain(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	first := f.Create("t").Document
	other := f.Other(f.Store)
	const location, uuid = "file:///wh/v1.metadata.json", "00000000-0000-4000-8000-000000000001"
	if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{first.UUID(), uuid} {
		f.Rewrite(location, bytes.ReplaceAll(first.Raw(), []byte(first.UUID()), []byte(want)))
		if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: location}); err != nil {
			t.Fatal(err)
		}
		for _, node := range []*catalogkit.Instance{f.Instance, other} {
			loaded, err := node.LoadTable(f.Ctx, ident("t"))
			if err != nil || loaded.Document.UUID() != want {
				t.Errorf("loaded %s, %v, want %s", loaded.Document.UUID(), err, want)
			}
		}
		f.WantClean()
		if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
			t.Fatal(err)
		}
	}
}

// A storage accepts a file name with a query, but engines would look elsewhere. So a metadata
// location with a query is refused.
func TestNoMetadataBehindAQuery(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	raw := f.Create("t").Document.Raw()
	for _, location := range []string{"file:///wh/v1?x.metadata.json", "file:///wh/#/v1.metadata.json"} {
		f.Rewrite(location, raw)
		_, err := f.RegisterTable(f.Ctx, ident("u"), catalog.RegisterRequest{MetadataLocation: location})
		if moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("registered %s: %v", location, err)
		}
	}
}

// On a node that takes no locks, another table gets a name while a file is being registered under
// it. That table keeps the name.
func TestRegisterMeetsCreate(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnOpen, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	f.Create("t")
	gone, err := f.UnregisterTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	var created *catalog.Table
	hook.Once(func() { created = f.Create("u") })
	_, err = f.RegisterTable(f.Ctx, ident("u"), catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation})
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	if got, err := f.LoadTable(f.Ctx, ident("u")); err != nil || created == nil || got.Document.UUID() != created.Document.UUID() {
		t.Errorf("the name is of %+v (%v), want %+v", got, err, created)
	}
	f.WantClean()
}

func TestRegisterRefusesOddUUIDs(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	document := f.Create("t").Document
	for _, uuid := range []string{"", strings.Repeat("u", 10_000)} {
		f.Rewrite("file:///wh/odd.metadata.json", bytes.ReplaceAll(document.Raw(), []byte(document.UUID()), []byte(uuid)))
		_, err := f.RegisterTable(f.Ctx, ident("odd"), catalog.RegisterRequest{MetadataLocation: "file:///wh/odd.metadata.json"})
		catalogkit.WantKind(t, err, moorage.KindIllegalArgument)
	}
}

// A table is not registered if Java could never unify its partition specs.
func TestRegisterRefusesSpecsThatDoNotJoin(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	raw := f.Create("t").Document.Raw()
	must1(f.UnregisterTable(f.Ctx, ident("t")))(t)
	specs := func(second string) []byte {
		const one = `{"spec-id":0,"fields":[{"source-id":1,"field-id":1000,"transform":"bucket[4]","name":"b"}]}`
		return bytes.Replace(raw, []byte(`"partition-specs":[{"spec-id":0,"fields":[]}]`), []byte(`"partition-specs":[`+one+`,`+second+`]`), 1)
	}
	const location = "file:///wh/joined.metadata.json"
	register := func(content []byte) error {
		f.Rewrite(location, content)
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: location})
		return err
	}
	catalogkit.WantKind(t, register(specs(`{"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"transform":"identity","name":"n"}]}`)), moorage.KindValidation)
	must(t, register(specs(`{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"transform":"void","name":"b"}]}`)))
	f.WantClean()
}

// If a file is damaged or in a place that is not allowed, the error names the file, and explains
// how to allow other places.
func TestRegisterTellsWhatIsWrongWithTheFile(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	raw := f.Create("t").Document.Raw()
	for location, content := range map[string][]byte{"file:///wh/damaged.metadata.json": []byte("garbage"), "file:///wh/cut.metadata.json": raw[:len(raw)-1]} {
		f.Rewrite(location, content)
		_, err := f.RegisterTable(f.Ctx, ident("u"), catalog.RegisterRequest{MetadataLocation: location})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
		if got := moorage.MessageOf(err); !strings.HasPrefix(got, "Cannot read metadata file "+location+": Cannot parse JSON: ") {
			t.Errorf("%s: the answer is %q", location, got)
		}
	}
	_, err := f.RegisterTable(f.Ctx, ident("u"), catalog.RegisterRequest{MetadataLocation: "file:///elsewhere/t.metadata.json"})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	if got := moorage.MessageOf(err); !strings.Contains(got, "(add one with moorage warehouse change --allow-location)") {
		t.Errorf("elsewhere: the answer is %q", got)
	}
	f.WantClean()
}

// A commit trims a version from the metadata log. A register of that version, in any spelling, is
// refused before the file is deleted. If another version is registered at that time, the files in
// its log stay.
func TestRegisterBehindTrimmingCommit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		choose  func(oldest, last *catalog.Table) string
		refused bool
	}{
		"the oldest": {func(oldest, _ *catalog.Table) string { return oldest.MetadataLocation }, true},
		"the oldest, spelled otherwise": {func(oldest, _ *catalog.Table) string {
			return strings.Replace(oldest.MetadataLocation, "file:///", "file:/", 1)
		}, true},
		"one that logs the others": {func(_, last *catalog.Table) string { return last.MetadataLocation }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, losing := newLosingFixture(t)
			oldest, last := f.Create("t"), (*catalog.Table)(nil)
			for i := range 2 {
				var err error
				last, err = f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", fmt.Sprint(i)))
				must(t, err)
			}
			node := f.Other(losing.Store)
			location := row.choose(oldest, last)
			losing.lose(gate.Commit, false, func() {
				_, err := node.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: location, Overwrite: true})
				if refused := moorage.KindOf(err) == moorage.KindUnavailable; refused != row.refused || err != nil && !refused {
					t.Errorf("the register: %v, want it refused: %t", err, row.refused)
				}
			})
			committed, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming))
			must(t, err)
			if row.refused {
				location = committed.MetadataLocation
			}
			now, err := f.Other(losing.Store).LoadTable(f.Ctx, ident("t"))
			if err != nil || now.MetadataLocation != location {
				t.Fatalf("the table is %+v (%v), want it at %s", now, err, location)
			}
			for _, entry := range now.Document.MetadataLog() {
				if len(f.Present([]string{entry.MetadataLocation})) == 0 {
					t.Errorf("%s, which is in the log, was deleted", entry.MetadataLocation)
				}
			}
			f.WantClean()
		})
	}
}

// If a table is dropped during a rename to its own name, the rename fails because the table is
// missing, whatever it has read before.
func TestRenameToItself(t *testing.T) {
	t.Parallel()
	dropping := new(droppingStore)
	f := catalogkit.New(t, func(c *catalog.Config) {
		dropping.Store = c.Store
		c.Store = dropping
		c.Locks = locks.GrantAll{}
	})
	f.Create("t")
	catalogkit.WantKind(t, f.RenameTable(f.Ctx, ident("t"), ident("t")), moorage.KindAlreadyExists)
	dropping.drop = func() {
		if err := f.Other(dropping.Store).DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Error(err)
		}
	}
	catalogkit.WantKind(t, f.RenameTable(f.Ctx, ident("t"), ident("t")), moorage.KindNoSuchTable)
	f.WantClean()
}

// droppingStore calls drop once, after a read of an entry and its path.
type droppingStore struct {
	registry.Store
	drop func()
}

func (s *droppingStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := s.Store.Get(ctx, keys...)
	if drop := s.drop; drop != nil && len(keys) > 1 && keys[len(keys)-1].Table == registry.TableEntry {
		s.drop = nil
		drop()
	}
	return records, err
}

// A metadata file of a transaction in progress cannot be registered, in any spelling. It will be
// deleted if the transaction is aborted.
func TestRegisterFileOfTransaction(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	gone := f.Create("gone")
	if _, err := f.UnregisterTable(f.Ctx, ident("gone")); err != nil {
		t.Fatal(err)
	}
	id, err := f.Ledger.NewID()
	if err != nil {
		t.Fatal(err)
	}
	entry, err := f.Transactions.Begin(f.Ctx, txlog.Transaction{ID: id, Warehouse: catalogkit.Warehouse, Files: []string{gone.MetadataLocation}, Deadline: f.Clock.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	for _, spelled := range []string{"file:///", "file:/", "/", "file://localhost/"} {
		location := strings.Replace(gone.MetadataLocation, "file:///", spelled, 1)
		_, err = f.RegisterTable(f.Ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: location})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	if err := f.Transactions.Finish(f.Ctx, entry); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.Ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation}); err != nil {
		t.Error(err)
	}
	f.WantClean()
}

// While a register reads its file, another request creates a table with the same name and location.
// The error states that the table exists, and not that the location is taken.
func TestRegisterLosesToCreate(t *testing.T) {
	t.Parallel()
	var reading catalogkit.Hook
	f := catalogkit.New(t, reading.OnOpen, func(c *catalog.Config) { c.Locks = locks.GrantAll{} }) // like another node
	table := f.Create("t")
	if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	reading.Once(func() {
		if err := createTableAt(ident("t"), table.Document.Location())(f.Ctx, f.Instance); err != nil {
			t.Error(err)
		}
	})
	_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
}

// statHook runs a hook after each Stat.
type statHook struct {
	storage.Store
	hook *catalogkit.Hook
}

func (s statHook) Stat(ctx context.Context, location string) (storage.Info, error) {
	info, err := s.Store.Stat(ctx, location)
	s.hook.Run()
	return info, err
}

// While the last file of an unregistered table is registered, another request registers it, makes
// the table delete the file, and unregisters the table again. The tombstone that the register has
// read is no longer the present one, so it reads again, and does not register a file that is gone.
func TestRegisterReadsItsTombstoneAgain(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.Locks = locks.GrantAll{} // like another node
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return statHook{inner, hook} })
	})
	f.Create("t")
	last, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming))
	must(t, err)
	must1(f.UnregisterTable(f.Ctx, ident("t")))(t)
	hook.Once(func() {
		must1(f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation}))(t)
		for _, value := range []string{"1", "2"} {
			must1(f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", value)))(t)
		}
		must1(f.UnregisterTable(f.Ctx, ident("t")))(t)
	})
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	f.WantClean()
}

// TestRegisterRefusesOtherNames: a file must have the name of a metadata file. In the folder of
// another table, only such files are protected from orphan removal.
func TestRegisterRefusesOtherNames(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	raw := f.Create("t").Document.Raw()
	for i, row := range []struct {
		name string
		ok   bool
	}{
		{"v1.metadata.json", true}, {"v1.gz.metadata.json", true}, {"v1.metadata.json.gz", true},
		{"v1.json", true}, {"metadata.json", true}, {"data.parquet", false}, {"v1.metadata.json.bak", false},
		{"v1.json.gz", true}, {"v1.metadata.json.gz.gz", false}, {"V1.METADATA.JSON", false},
	} {
		location := "file:///wh/names/" + row.name
		uuid := fmt.Sprintf("00000000-0000-4000-8000-0000000000%02d", i)
		moved := bytes.ReplaceAll(raw, []byte(f.Load("t").Document.UUID()), []byte(uuid))
		moved = bytes.ReplaceAll(moved, []byte(f.Load("t").Document.Location()), []byte("file:///wh/names/of/"+uuid))
		f.Rewrite(location, moved)
		_, err := f.RegisterTable(f.Ctx, ident(fmt.Sprint("n", i)), catalog.RegisterRequest{MetadataLocation: location})
		if want := moorage.KindBadRequest; row.ok != (err == nil) || !row.ok && moorage.KindOf(err) != want {
			t.Errorf("%s: %v, want that it is taken: %t", row.name, err, row.ok)
		}
	}
}
