package commit_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// watchedStore calls seen with the first key of each Get.
type watchedStore struct {
	registry.Store
	seen func(registry.Key)
}

func (s *watchedStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.seen(keys[0])
	return s.Store.Get(ctx, keys...)
}

// The tables of a transaction are built concurrently. The answer names the first table that cannot
// be built, no matter which goroutine is faster.
func TestTransactionTellsFirstFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := registry.UUIDKey("f47ac10b-58cc-4372-a567-000000000001")
		f := catalogkit.New(t, func(c *catalog.Config) {
			c.Store = &watchedStore{c.Store, func(key registry.Key) {
				if key == slow {
					time.Sleep(time.Second) // until all others have ended
				}
			}}
		})
		a, b := f.Create("a"), f.Create("b")
		changes := []catalog.TableChange{
			catalogkit.On("new1", catalogkit.CreateWithUUID(t, a.Document.Location(), 1)),
			catalogkit.On("new2", catalogkit.CreateWithUUID(t, b.Document.Location(), 2)),
		}
		for i := range 30 {
			changes = append(changes, catalogkit.On(fmt.Sprint("more", i), catalogkit.CreateWithUUID(t, b.Document.Location(), 3+i)))
		}
		err := f.Transact(changes...)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
		if message := moorage.MessageOf(err); !strings.Contains(message, ident("new1").String()) {
			t.Errorf("the client is answered %q, want the first table in it", message)
		}
		f.WantNoTransactions()
		f.WantClean()
	})
}

// wantSurvived checks the result of a transaction in which code panicked.
func wantSurvived(f *catalogkit.Fixture, err error, place string) {
	f.T.Helper()
	catalogkit.WantKind(f.T, err, moorage.KindInternal)
	if err == nil || !strings.Contains(err.Error(), "panic: out of range") || !strings.Contains(err.Error(), place) {
		f.T.Errorf("the log says %v, want the panic and that it was in %s", err, place)
	}
	if message := moorage.MessageOf(err); strings.Contains(message, "out of range") {
		f.T.Errorf("the client is answered %q", message)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// A panic while a table is built ends only its transaction. The transaction then holds no locks.
func TestTransactionPanicsAtBuild(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.Store = &watchedStore{c.Store, func(key registry.Key) {
			if key.Table == registry.TableUUID && armed.Load() {
				panic("out of range")
			}
		}}
	})
	f.Create("a")
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))}
	armed.Store(true)
	wantSurvived(f, f.Transact(changes...), "transaction_participant_test.go")
	f.WantProperty("a", "n", "")
	armed.Store(false)
	if err := f.Transact(changes...); err != nil {
		t.Error(err)
	}
}

// panickingFiles panics when a file is opened.
type panickingFiles struct {
	storage.Store
	armed *atomic.Bool
}

func (f panickingFiles) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if f.armed.Load() {
		panic("out of range")
	}
	return f.Store.Open(ctx, location)
}

// The same holds for a panic while a metadata file is read.
func TestTransactionPanicsAtRead(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Create("b")
	var armed atomic.Bool
	config := f.Config
	catalogkit.WrapStorage(&config, func(inner storage.Store) storage.Store { return panickingFiles{inner, &armed} })
	node, err := catalogkit.NewInstance(config) // with an empty cache of documents
	if err != nil {
		t.Fatal(err)
	}
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))}
	armed.Store(true)
	wantSurvived(f, node.CommitTransaction(f.Ctx, catalogkit.Warehouse, changes), "transaction_participant_test.go")
	armed.Store(false)
	if err := node.CommitTransaction(f.Ctx, catalogkit.Warehouse, changes); err != nil {
		t.Error(err)
	}
}
