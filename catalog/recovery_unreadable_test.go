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
	"moorage/txlog"
)

// damage leaves a transaction over a table whose record cannot be read, and one of its files.
func (f *fixture) damage(name string) txlog.Entry {
	f.t.Helper()
	entry := f.abandon(name)
	tampering{f}.write(registry.Put(registry.TransactionKey(entry.ID), registry.StatePending, []byte(`{"id":7}`)))
	return entry
}

// Operators see a transaction whose record cannot be read, and what comes behind it. It is neither
// tried again nor aborted: the last resort removes it, and its files stay.
func TestUnreadableTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	entries := []txlog.Entry{f.abandon("t"), f.damage("t"), f.abandon("t"), f.damage("t")}
	broken, other := entries[1], entries[3]
	var ids []string
	for after := ""; ; {
		found, next, err := f.recovery().Unfinished(f.ctx, after, 1)
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
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 2 || !strings.Contains(strings.Join(report.Problems, "\n"), registry.TransactionKey(broken.ID).String()+", which is pending, cannot be read") {
		t.Errorf("check: %q (%v)", report.Problems, err)
	}
	if err := f.recovery().RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entries[0])
	f.wantFiles(entries[2])
	_, retried := f.recovery().Retry(f.ctx, broken.ID.String())
	_, aborted := f.recovery().Abort(f.ctx, broken.ID.String())
	for _, err := range []error{retried, aborted} {
		if wantKind(t, err, moorage.KindUnprocessable); !strings.Contains(moorage.MessageOf(err), "moorage doctor forget") {
			t.Errorf("it is told %q", moorage.MessageOf(err))
		}
	}
	if off, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil || off.Transactions != 2 {
		t.Errorf("forgotten: %+v (%v)", off, err)
	}
	for _, entry := range []txlog.Entry{broken, other} {
		f.wantFiles(entry, entry.Files[0])
	}
	f.wantEnded()
	f.wantClean()
	condition, write, err := broken.Commit(broken.Files[:1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.store.Apply(f.ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}})
	if failed, ok := registry.FailedCondition(err); !ok || failed != condition {
		t.Errorf("its coordinator was answered %v", err)
	}
}

// There is a transaction whose record cannot be read. Meanwhile no file is registered that no table
// names: it may be about to be deleted.
func TestRegisterBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := f.create("gone")
	f.create("t")
	if _, err := f.UnregisterTable(f.ctx, ident("gone")); err != nil {
		t.Fatal(err)
	}
	broken := f.damage("t")
	request := catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err := f.RegisterTable(f.ctx, ident("new"), request)
	wantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, broken.ID.String()) || !strings.Contains(message, "moorage doctor forget") {
		t.Errorf("the client is answered %q", message)
	}
	if err := f.TableExists(f.ctx, ident("new")); moorage.KindOf(err) != moorage.KindNoSuchTable {
		t.Errorf("a table that was refused: %v", err)
	}
	// One that is known to have written the file is the better reason.
	transaction := f.transactionOver("t")
	transaction.Files = []string{gone.MetadataLocation}
	entry, err := f.transactions.Begin(f.ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.RegisterTable(f.ctx, ident("new"), request)
	wantKind(t, err, moorage.KindBadRequest)
	if err := f.transactions.Finish(f.ctx, entry); err != nil {
		t.Fatal(err)
	}
	if _, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.ctx, ident("new"), request); err != nil {
		t.Error(err)
	}
	f.wantClean()
}

// A record that no transaction of this version has keeps nobody from the transactions. Check
// reports it.
func TestTransactionWithoutID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := f.create("gone")
	f.create("t")
	if _, err := f.UnregisterTable(f.ctx, ident("gone")); err != nil {
		t.Fatal(err)
	}
	dead := f.abandon("t")
	key := registry.Key{Table: registry.TableTransaction, ID: "00 x"}
	tampering{f}.write(registry.Put(key, registry.StatePending, []byte("{")))
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "cannot be read: the key transaction/00 x holds no id") {
		t.Errorf("check: %q (%v)", report.Problems, err)
	}
	if found, next, err := f.recovery().Unfinished(f.ctx, "", 0); err != nil || next != "" || len(found) != 1 || found[0].ID != dead.ID {
		t.Errorf("listed are %+v (%v)", found, err)
	}
	if err := f.recovery().RunOnce(f.ctx); err != nil {
		t.Error(err)
	}
	f.wantFiles(dead)
	request := catalog.RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err = f.RegisterTable(f.ctx, ident("new"), request)
	wantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, "forgotten, by moorage doctor forget: the key transaction/00 x holds no id") {
		t.Errorf("the client is answered %q", message)
	}
	tampering{f}.write(registry.Delete(key))
	if _, err := f.RegisterTable(f.ctx, ident("new"), request); err != nil {
		t.Error(err)
	}
	f.wantClean()
}

// What a dropped table or view names was published. So no transaction deletes it, whether or not
// its record can be read. That is so of no other file of the table or view.
func TestComeBackBesideUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.create("gone").MetadataLocation
	last, err := f.Commit(f.ctx, ident("gone"), setProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	view := f.createView("v")
	f.create("t")
	if err := errors.Join(f.DropTable(f.ctx, ident("gone"), catalog.DropOptions{}), f.DropView(f.ctx, ident("v"))); err != nil {
		t.Fatal(err)
	}
	f.damage("t")
	_, err = f.RegisterTable(f.ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: first})
	wantKind(t, err, moorage.KindUnavailable)
	if _, err := f.RegisterTable(f.ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation}); err != nil {
		t.Error(err)
	}
	if _, err := f.RegisterView(f.ctx, ident("v"), view.MetadataLocation); err != nil {
		t.Error(err)
	}
	// In place of itself, and no other file in its place.
	if _, err := f.RegisterTable(f.ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation, Overwrite: true}); err != nil {
		t.Error(err)
	}
	_, err = f.RegisterTable(f.ctx, ident("gone"), catalog.RegisterRequest{MetadataLocation: first, Overwrite: true})
	wantKind(t, err, moorage.KindUnavailable)
}

// A table came back from a file that a transaction had published, while the record of the
// transaction could not be read. The file stays when the record can be read again and the
// transaction is recovered.
func TestComeBackOfWhatTransactionPublished(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	published := f.create("t").MetadataLocation
	transaction := f.transactionOver("t")
	transaction.Files[1] = published
	entry, err := f.transactions.Begin(f.ctx, transaction)
	if err != nil {
		t.Fatal(err)
	}
	f.write(entry.Surplus()[0])
	condition, write, err := entry.Commit([]string{published})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Apply(f.ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}}); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	tampering{f}.write(registry.Put(write.Key, write.State, []byte("{")))
	if _, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: published}); err != nil {
		t.Fatal(err)
	}
	tampering{f}.write(write)
	if err := f.recovery().RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entry, published)
	f.wantEnded()
	f.wantClean()
}
