package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// damage leaves a transaction over a table, with an unreadable record, and one of its files.
func damage(f *catalogkit.Fixture, name string) txlog.Entry {
	f.T.Helper()
	entry := abandon(f, name)
	catalogkit.Tamper(f).Write(registry.Put(registry.TransactionKey(entry.ID), registry.StatePending, []byte(`{"id":7}`)))
	return entry
}

// Operators see a transaction with an unreadable record, and the transactions after it. It can be
// neither retried nor aborted. As a last resort, an operator can make the catalog forget it, and
// its files stay.
func TestUnreadableTransaction(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	entries := []txlog.Entry{abandon(f, "t"), damage(f, "t"), abandon(f, "t"), damage(f, "t")}
	broken, other := entries[1], entries[3]
	var ids []string
	for after := ""; ; {
		found, next, err := f.Recovery().Unfinished(f.Ctx, after, 1)
		if err != nil || len(found) != 1 {
			t.Fatalf("a page of one: %+v (%v)", found, err)
		}
		ids = append(ids, found[0].ID.String())
		if want := found[0].ID == broken.ID || found[0].ID == other.ID; (found[0].Unreadable != nil) != want {
			t.Errorf("unreadable is %q, want it so: %t", found[0].Unreadable, want)
		}
		if found[0].Unreadable != nil && found[0].State != registry.StatePending {
			t.Errorf("listed as %+v", found[0])
		}
		if after = next; next == "" {
			break
		}
	}
	var want []string
	for _, entry := range entries {
		want = append(want, entry.ID.String())
	}
	if slices.Sort(want); !slices.Equal(ids, want) {
		t.Errorf("listed %q, want %q", ids, want)
	}
	report, err := f.Check(f.Ctx)
	if err != nil || len(report.Problems) != 2 || !strings.Contains(strings.Join(report.Problems, "\n"), registry.TransactionKey(broken.ID).String()+", which is pending, cannot be read") {
		t.Errorf("check: %q (%v)", report.Problems, err)
	}
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entries[0])
	wantFiles(f, entries[2])
	_, retried := f.Recovery().Retry(f.Ctx, broken.ID.String())
	_, aborted := f.Recovery().Abort(f.Ctx, broken.ID.String())
	for _, err := range []error{retried, aborted} {
		if catalogkit.WantKind(t, err, moorage.KindUnprocessable); !strings.Contains(moorage.MessageOf(err), "moorage doctor forget") {
			t.Errorf("it is told %q", moorage.MessageOf(err))
		}
	}
	if off, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil || off.Transactions != 2 {
		t.Errorf("forgotten: %+v (%v)", off, err)
	}
	for _, entry := range []txlog.Entry{broken, other} {
		wantFiles(f, entry, entry.Files[0])
	}
	wantEnded(f)
	f.WantClean()
	condition, write, err := broken.Commit(broken.Files[:1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Store.Apply(f.Ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}})
	if failed, ok := registry.FailedCondition(err); !ok || failed != condition {
		t.Errorf("its coordinator was answered %v", err)
	}
}

// While there is a transaction with an unreadable record, a file that no table names cannot be
// registered, because the transaction may be about to delete it.
func TestRegisterBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	gone := f.Create("gone")
	f.Create("t")
	if _, err := f.UnregisterTable(f.Ctx, ident("gone")); err != nil {
		t.Fatal(err)
	}
	broken := damage(f, "t")
	request := catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err := f.RegisterTable(f.Ctx, ident("new"), request)
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, broken.ID.String()) || !strings.Contains(message, "moorage doctor forget") {
		t.Errorf("the client is answered %q", message)
	}
	if err := f.TableExists(f.Ctx, ident("new")); moorage.KindOf(err) != moorage.KindNoSuchTable {
		t.Errorf("a table that was refused: %v", err)
	}
	// If a readable transaction has written the file, the error names that one.
	transaction := transactionOver(f, "t")
	transaction.Files = []string{gone.MetadataLocation}
	entry, err := f.Transactions.Begin(f.Ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.RegisterTable(f.Ctx, ident("new"), request)
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	if err := f.Transactions.Finish(f.Ctx, entry); err != nil {
		t.Fatal(err)
	}
	if _, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.Ctx, ident("new"), request); err != nil {
		t.Error(err)
	}
	f.WantClean()
}

// A record whose key has no ID does not prevent work on other transactions. Check reports it.
func TestTransactionWithoutID(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	gone := f.Create("gone")
	f.Create("t")
	if _, err := f.UnregisterTable(f.Ctx, ident("gone")); err != nil {
		t.Fatal(err)
	}
	dead := abandon(f, "t")
	key := registry.Key{Table: registry.TableTransaction, ID: "00 x"}
	catalogkit.Tamper(f).Write(registry.Put(key, registry.StatePending, []byte("{")))
	report, err := f.Check(f.Ctx)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "cannot be read: the key transaction/00 x holds no id") {
		t.Errorf("check: %q (%v)", report.Problems, err)
	}
	if found, next, err := f.Recovery().Unfinished(f.Ctx, "", 0); err != nil || next != "" || len(found) != 1 || found[0].ID != dead.ID {
		t.Errorf("listed are %+v (%v)", found, err)
	}
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Error(err)
	}
	wantFiles(f, dead)
	request := catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err = f.RegisterTable(f.Ctx, ident("new"), request)
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, "forgotten, by moorage doctor forget: the key transaction/00 x holds no id") {
		t.Errorf("the client is answered %q", message)
	}
	catalogkit.Tamper(f).Write(registry.Delete(key))
	if _, err := f.RegisterTable(f.Ctx, ident("new"), request); err != nil {
		t.Error(err)
	}
	f.WantClean()
}

// The file named by a dropped table or view was published. So no transaction deletes it, whether or
// not the transaction's record can be read. This holds for no other file of the table or view.
func TestComeBackBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	first := f.Create("gone").MetadataLocation
	last, err := f.Commit(f.Ctx, ident("gone"), catalogkit.SetProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	view := f.MakeView("v")
	f.Create("t")
	if err := errors.Join(f.DropTable(f.Ctx, ident("gone"), catalog.DropOptions{}), f.DropView(f.Ctx, ident("v"))); err != nil {
		t.Fatal(err)
	}
	damage(f, "t")
	_, err = f.RegisterTable(f.Ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: first})
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	if _, err := f.RegisterTable(f.Ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation}); err != nil {
		t.Error(err)
	}
	if _, err := f.RegisterView(f.Ctx, ident("v"), view.MetadataLocation); err != nil {
		t.Error(err)
	}
	// The table can replace itself, but no other file can replace it.
	if _, err := f.RegisterTable(f.Ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation, Overwrite: true}); err != nil {
		t.Error(err)
	}
	_, err = f.RegisterTable(f.Ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: first, Overwrite: true})
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
}

// A table is restored from a published file of a transaction while the transaction's record is
// unreadable. After the record has become readable, recovery of the transaction does not delete the
// file.
func TestComeBackOfWhatTransactionPublished(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	published := f.Create("t").MetadataLocation
	transaction := transactionOver(f, "t")
	transaction.Files[1] = published
	entry, err := f.Transactions.Begin(f.Ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(entry.Surplus()[0])
	condition, write, err := entry.Commit([]string{published})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.Apply(f.Ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}}); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	catalogkit.Tamper(f).Write(registry.Put(write.Key, write.State, []byte("{")))
	if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: published}); err != nil {
		t.Fatal(err)
	}
	catalogkit.Tamper(f).Write(write)
	if err := f.Recovery().RunOnce(f.Ctx); err != nil {
		t.Fatal(err)
	}
	wantFiles(f, entry, published)
	wantEnded(f)
	f.WantClean()
}
