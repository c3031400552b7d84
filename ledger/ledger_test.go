package ledger_test

import (
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
)

// TestNewNeedsAllParts leaves out each required field in turn.
func TestNewNeedsAllParts(t *testing.T) {
	t.Parallel()
	whole := ledger.Config{
		Store: memory.New(rand.Reader), Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	}
	for name, drop := range map[string]func(*ledger.Config){
		"store":  func(c *ledger.Config) { c.Store = nil },
		"clock":  func(c *ledger.Config) { c.Now = nil },
		"random": func(c *ledger.Config) { c.Random = nil },
		"logger": func(c *ledger.Config) { c.Logger = nil },
	} {
		config := whole
		drop(&config)
		if _, err := ledger.New(config); err == nil {
			t.Errorf("New without its %s does not fail", name)
		}
	}
}

// TestOwners: a process that is the only user of its store always has the same name.
func TestOwners(t *testing.T) {
	t.Parallel()
	owner := func(alone bool) registry.ID {
		deps, err := ledger.New(ledger.Config{
			Store: memory.New(rand.Reader), Alone: alone, Now: time.Now, Random: rand.Reader,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return deps.Owner
	}
	alone, again, shared, other := owner(true), owner(true), owner(false), owner(false)
	if alone != again || shared == other || shared == alone {
		t.Error("owners of shared stores must differ, and the others not")
	}
}
