package registrytest

import (
	"cmp"
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// LedgerDeps returns ledger.Deps for a process, with a ledger over config.Store. By default they
// use the clock and the random bits of this machine, and a logger that discards. LedgerDeps panics
// without a store.
func LedgerDeps(config ledger.Config) ledger.Deps {
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Random = cmp.Or[io.Reader](config.Random, rand.Reader)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	deps, err := ledger.New(config)
	if err != nil {
		panic(err)
	}
	return deps
}

// Ledger returns a ledger over store with the clock and the random bits of this machine.
func Ledger(store registry.Store) *ledger.Ledger {
	return LedgerDeps(ledger.Config{Store: store}).Ledger
}
