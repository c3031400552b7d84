package catalog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
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

// Operators see a transaction whose record cannot be read, and what comes behind it. They can have
// it forgotten, but not tried again.
func TestUnreadableTransaction(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	f.create("t")
	entries := []txlog.Entry{f.abandon("t"), f.damage("t"), f.abandon("t"), f.damage("t")}
	broken, other := entries[1], entries[3]
	var ids []string
	for page := (Page{Limit: 1}); ; {
		found, next, err := f.UnfinishedTransactions(f.ctx, page)
		if err != nil || len(found) != 1 {
			t.Fatalf("a page of one: %+v (%v)", found, err)
		}
		ids = append(ids, found[0].ID)
		if want := found[0].ID == broken.ID.String() || found[0].ID == other.ID.String(); (found[0].Unreadable != "") != want {
			t.Errorf("unreadable is %q, want it so: %t", found[0].Unreadable, want)
		}
		if found[0].Unreadable != "" && (found[0].State != "pending" || found[0].Tables == nil || found[0].Files == nil || found[0].Published == nil) {
			t.Errorf("listed as %+v", found[0])
		}
		if page.After = next; next == "" {
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
	_, err = f.Retry(f.ctx, broken.ID.String())
	wantKind(t, err, moorage.KindUnprocessable)

	if err := f.recovery.RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entries[0])
	f.wantFiles(entries[2])
	for _, entry := range []txlog.Entry{broken, other} {
		got, err := f.Abort(f.ctx, entry.ID.String())
		if err != nil || got.Was != "pending" || !got.Forgotten || !got.Unreadable || got.Left == nil || len(got.Left) > 0 {
			t.Errorf("abort: %+v (%v)", got, err)
		}
		f.wantFiles(entry, entry.Files[0])
	}
	if !strings.Contains(logs.String(), "unreadable=true") {
		t.Errorf("the log does not tell of it: %s", logs.String())
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
	request := RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err := f.RegisterTable(f.ctx, ident("new"), request)
	wantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, "moorage recover abort "+broken.ID.String()) {
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
	if _, err := f.Abort(f.ctx, broken.ID.String()); err != nil {
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
	if found, next, err := f.UnfinishedTransactions(f.ctx, Page{}); err != nil || next != "" || len(found) != 1 || found[0].ID != dead.ID.String() {
		t.Errorf("listed are %+v (%v)", found, err)
	}
	if err := f.recovery.RunOnce(f.ctx); err != nil {
		t.Error(err)
	}
	f.wantFiles(dead)
	request := RegisterRequest{MetadataLocation: gone.MetadataLocation}
	_, err = f.RegisterTable(f.ctx, ident("new"), request)
	wantKind(t, err, moorage.KindUnavailable)
	if message := moorage.MessageOf(err); !strings.Contains(message, "remove it from the store: the key transaction/00 x holds no id") {
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
	if err := errors.Join(f.DropTable(f.ctx, ident("gone"), DropOptions{}), f.DropView(f.ctx, ident("v"))); err != nil {
		t.Fatal(err)
	}
	f.damage("t")
	_, err = f.RegisterTable(f.ctx, ident("gone"), RegisterRequest{MetadataLocation: first})
	wantKind(t, err, moorage.KindUnavailable)
	if _, err := f.RegisterTable(f.ctx, ident("gone"), RegisterRequest{MetadataLocation: last.MetadataLocation}); err != nil {
		t.Error(err)
	}
	if _, err := f.RegisterView(f.ctx, ident("v"), view.MetadataLocation); err != nil {
		t.Error(err)
	}
	// In place of itself, and no other file in its place.
	if _, err := f.RegisterTable(f.ctx, ident("gone"), RegisterRequest{MetadataLocation: last.MetadataLocation, Overwrite: true}); err != nil {
		t.Error(err)
	}
	_, err = f.RegisterTable(f.ctx, ident("gone"), RegisterRequest{MetadataLocation: first, Overwrite: true})
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
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{}); err != nil {
		t.Fatal(err)
	}
	tampering{f}.write(registry.Put(write.Key, write.State, []byte("{")))
	if _, err := f.RegisterTable(f.ctx, ident("t"), RegisterRequest{MetadataLocation: published}); err != nil {
		t.Fatal(err)
	}
	tampering{f}.write(write)
	if err := f.recovery.RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entry, published)
	f.wantEnded()
	f.wantClean()
}

// mendingStore calls mend, once, before the next Apply.
type mendingStore struct {
	registry.Store
	mend func()
}

func (s *mendingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if mend := s.mend; mend != nil {
		s.mend = nil
		mend()
	}
	return s.Store.Apply(ctx, batch)
}

// A record that can be read again in the moment in which it is forgotten is not forgotten.
func TestForgetMended(t *testing.T) {
	t.Parallel()
	mending := new(mendingStore)
	f := newFixture(t, func(c *Config) {
		mending.Store = c.Store
		c.Store = mending
	})
	f.create("t")
	entry := f.damage("t")
	mending.mend = func() { tampering{f}.put(registry.TransactionKey(entry.ID), registry.StatePending, entry.Transaction) }
	got, err := f.Abort(f.ctx, entry.ID.String())
	if err != nil || got.Forgotten || got.Unreadable || got.Was != "pending" {
		t.Errorf("got %+v (%v), want it aborted as one that can be read", got, err)
	}
	f.clock.Advance(time.Minute)
	if err := f.recovery.RunOnce(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantFiles(entry)
	f.wantEnded()
}
