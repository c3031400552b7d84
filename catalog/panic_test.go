package catalog

import (
	"bytes"
	"context"
	"testing"

	"moorage"
	"moorage/storage"
)

// panickingWrites is a storage in which a file that holds fatal cannot be made without a panic.
type panickingWrites struct{ storage.Store }

const fatal = "fatal"

func (f *panickingWrites) Create(ctx context.Context, location string, body []byte) error {
	if bytes.Contains(body, []byte(fatal)) {
		panic(fatal)
	}
	return f.Store.Create(ctx, location, body)
}

// A file whose write panics, in a goroutine of its own, was not written: the transaction has not happened, and neither that nor the process ends.
func TestTransactionPanicsAtWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store { return &panickingWrites{inner} })
	})
	f.create("a")
	f.create("b")
	wantKind(t, f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", fatal))), moorage.KindInternal)
	for _, name := range []string{"a", "b"} {
		f.wantProperty(name, "n", "")
	}
	f.wantNoTransactions()
	must(t, f.transact(on("a", setProperty(t, "n", "2")), on("b", setProperty(t, "n", "2"))))
	f.wantClean()
}
