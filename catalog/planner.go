package catalog

import (
	"io"
	"log/slog"
	"time"

	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/rebase"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// planner builds the intents of verbs, and reads the records that they depend on. It changes
// nothing, with one exception: a create may begin a waiting purge (forwarding).
type planner struct {
	ledger    *ledger.Ledger
	directory *directory.Directory
	claims    *claims.Claims
	documents *documents.Documents
	rebaser   *rebase.Rebaser
	now       func() time.Time
	keyLife   time.Duration // of outcomes, including the grace
	random    io.Reader
	guard     *gate.Guard
	guarded   bool // there is a guard, so privileges are checked
	log       *slog.Logger
	// undropWindow and purgeDelay are the fields of Config.
	undropWindow, purgeDelay time.Duration
	kickPurge                func()
}

// parent is the namespace or warehouse of a new object, as of one read.
type parent struct {
	record    registry.Record
	id        registry.ID
	warehouse registry.Warehouse
	storage   storage.Store // of the warehouse
}

func parentAt(path *directory.Path) parent {
	return parent{path.Record(), path.ID(), path.Warehouse, path.Storage}
}

// unchanged requires that p is as it was read, and so that it is live.
func (p parent) unchanged() registry.Condition { return ledger.Unchanged(p.record) }
