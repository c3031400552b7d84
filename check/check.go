// Package check checks whether all records and metadata files of a store are consistent. Tests, the
// command line and the management API use it.
//
// # What it promises
//
// Check finds every fault listed at Check. It may run while nodes use the store: it looks twice,
// and reports the faults that both looks found. It changes nothing except that it removes the
// blockers of transactions that have ended. An unreadable record is one problem, and hides no
// other.
//
// # How it works
//
// One look (look.go) reads the tables of the registry in an order in which the records that a
// record names are read before the record itself. It holds all pointers in memory. unreadable.go
// finds out what an unreadable record belongs to. Concurrent callers share one run (shared.go).
//
// # What it must not know
//
// It does not know how the catalog changes records, locks and caches. Config.Files opens storages
// and parses files.
package check

import (
	"context"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// Files reads metadata files. *catalog.Catalog implements it. It is safe for concurrent use.
type Files interface {
	// PlaceOf returns where the tables of a warehouse may live, and how to reach that place.
	PlaceOf(warehouse registry.Warehouse) storage.Place
	// OwnPlaceOf returns the locations that a table has claimed, with the access settings of its
	// own record.
	OwnPlaceOf(pointer registry.Pointer) storage.Place
	// UUIDIn returns the table-uuid or view-uuid in the metadata file of a pointer. It reads the
	// file in place, and creates no folder. A missing file is KindNotFound, a file outside place is
	// storage.ErrOutside. If the storage does not answer, or refuses to, the error is
	// KindUnavailable or KindInternal.
	UUIDIn(ctx context.Context, place storage.Place, pointer registry.Pointer) (string, error)
	// StatIn returns nil if there is a file at location, which is in place. It returns
	// storage.ErrNotFound if there is none.
	StatIn(ctx context.Context, place storage.Place, location string) error
}

// Config configures a Checker. Deps and Files are required.
type Config struct {
	ledger.Deps
	Files Files
	// Opened is when this process opened the store, if it has exclusive use of it. A transaction
	// with an earlier deadline is due only then. The zero value means that other processes may have
	// the store open.
	Opened time.Time
}

// Report is the result of Check.
type Report struct {
	// The counts below are of readable records. Only live tables and views count.
	Warehouses int
	Namespaces int
	Tables     int
	Views      int
	// Problems has one sentence for each problem, sorted. It is empty, not nil, if there is none.
	Problems []string
	// Unread has a sentence for each storage whose files could not be read, with the reason. It is
	// sorted, and empty, not nil, if there is none. The state of these files is unknown.
	Unread []string
}

// Checker checks a whole store. It is safe for concurrent use.
type Checker struct {
	config       Config
	ledger       *ledger.Ledger
	transactions *txlog.Log
	runs         runs
}

// New returns a Checker of config.Store.
func New(config Config) *Checker {
	return &Checker{config: config, ledger: config.Ledger, transactions: txlog.New(config.Ledger)}
}

// Check reads all records and the metadata file of every live table and view. It leaves out the
// records of changes, of readers of changes, and of assignments, which expire. It reports the
// following, where "table" also means a view:
//
//   - an unreadable record; what depends on that record is not reported until it is repaired;
//   - a live table whose file is missing, cannot be parsed, or has another table-uuid;
//   - a name without a live table, a live table without its name or with two names;
//   - a namespace without its parent;
//   - a table-uuid or location of a live table that has no claim, or whose claim names a table that
//     does not have it;
//   - live tables whose locations nest; tasks without a table, and tasks that were given up;
//   - a dropped table whose purge was requested, but has no task;
//   - a transaction that is still unfinished long after its deadline;
//   - a record of the due index without a matching schedule, and the reverse;
//   - a job of maintenance whose table is long gone, or whose files are missing; a lease on a table
//     that is gone;
//   - grants on objects that are gone or have moved; records of access in a store with access
//     control off;
//   - a live table at a location that its warehouse does not allow in this process: it cannot be
//     loaded.
//
// A storage that does not answer, or refuses all reads, is not a problem of the store. It is tried
// a few times at most, and is in Report.Unread.
//
// A namespace in the middle of a drop is not a problem, even if the node that dropped it has died:
// the next operation that creates something in it restores it. An idempotency key whose metadata
// file is gone is not a problem either: a repeated request is answered with the table's present
// version.
//
// Check may run while nodes use the store. It reports a problem only if a second look, after the
// first has ended, finds it too. It changes nothing, except that it removes the blockers of
// transactions that were given up and have since ended.
//
// Callers that arrive during a run share its result, so the run may have read something before they
// called. It continues until it is done, or its last caller has left.
func (c *Checker) Check(ctx context.Context) (Report, error) {
	return c.runs.do(ctx, c.lookTwice)
}

// lookTwice is one run of Check.
func (c *Checker) lookTwice(ctx context.Context) (Report, error) {
	const op = "check.lookTwice"
	storages := &answering{places: map[string]*placeAnswers{}}
	report, err := c.lookOnce(ctx, storages)
	if err != nil || len(report.Problems) == 0 {
		return report, moorage.Annotate(op, "", err)
	}
	again, err := c.lookOnce(ctx, storages)
	if err != nil {
		return Report{}, moorage.Annotate(op, "", err)
	}
	again.Problems = slices.DeleteFunc(again.Problems, func(problem string) bool {
		_, found := slices.BinarySearch(report.Problems, problem)
		return !found
	})
	return again, nil
}
