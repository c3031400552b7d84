// Package check looks whether all records and metadata files of a store hold together. Tests, the
// command line and the management API use it.
//
// # What it promises
//
// Check finds every fault of the list at Check. It may run while nodes use the store: it looks
// twice, and reports what both looks found. It changes nothing but the blockers of transactions
// that have ended. A record that cannot be read is one problem, and hides no other.
//
// # How it works
//
// One look (look.go) reads the tables of the registry in an order in which what a record names is
// read before the record itself. It holds all pointers in memory. unreadable.go says what a record
// is about that cannot say so itself. Callers that come together share one run (shared.go).
//
// # What it must not know
//
// How the catalog changes records, locks and caches. Config.Files opens storages and parses files.
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

// Files reads metadata files. *catalog.Catalog does. It is safe for concurrent use.
type Files interface {
	// PlaceOf returns where the tables of a warehouse may live, and how that is reached.
	PlaceOf(warehouse registry.Warehouse) storage.Place
	// OwnPlaceOf returns the locations that a table has claimed, as its own record says how they
	// are reached.
	OwnPlaceOf(pointer registry.Pointer) storage.Place
	// UUIDIn returns the table-uuid or view-uuid in the metadata file that a pointer names. It
	// reads the file in place, and makes no folder. A file that is missing is KindNotFound, one
	// outside place storage.ErrOutside. If the storage does not answer, or refuses to, it is
	// KindUnavailable or KindInternal.
	UUIDIn(ctx context.Context, place storage.Place, pointer registry.Pointer) (string, error)
	// StatIn returns nil if there is a file at location, which is in place; storage.ErrNotFound if
	// there is none.
	StatIn(ctx context.Context, place storage.Place, location string) error
}

// Config is what a Checker is made of. Deps and Files are required.
type Config struct {
	ledger.Deps
	Files Files
	// Opened is when this process opened the store, if no other process has it open. A transaction
	// whose deadline was earlier is due only then. The zero value means that others may have it
	// open.
	Opened time.Time
}

// Report is what Check found.
type Report struct {
	// These count the records that can be read. Of tables and views only live ones count.
	Warehouses int
	Namespaces int
	Tables     int
	Views      int
	// Problems are one sentence each, sorted. The list is empty, not nil, if all is well.
	Problems []string
	// Unread has a sentence for each storage whose files could not be looked at, and says why. It
	// is sorted, empty and not nil if there is none. What is in these files may be well or not.
	Unread []string
}

// Checker looks at a whole store. It is safe for concurrent use.
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
// records of changes, of their followers, and of claims on work, which end by themselves. It
// reports the following, where "table" means a view too:
//
//   - a record that cannot be read. What depends on that record is not reported until somebody has
//     mended it;
//   - a live table whose file is missing, cannot be parsed, or has another table-uuid;
//   - a name without a live table, a live table without its name or with two;
//   - a namespace without its parent;
//   - a table-uuid or location of a live table that has no claim, or whose claim names a table that
//     does not have it;
//   - live tables whose locations nest; tasks without a table, and tasks that were given up;
//   - a dropped table whose purge was asked for, and has no task;
//   - a transaction that nobody ended although its deadline was over long ago;
//   - a record of the due index without the care that says so, and back;
//   - a job of maintenance whose table is long gone, or whose files are missing; a lease on a table
//     that is gone;
//   - grants on what is gone, or is elsewhere; records of access in a store whose access is off;
//   - a live table at a location that its warehouse does not allow in this process: loads of it are
//     refused.
//
// A storage that does not answer, or lets this process read nothing, is no problem of the store. It
// is asked a few times at most, and is in Report.Unread.
//
// A namespace in the middle of a drop is no problem, even if the node that dropped it has died: the
// next operation that makes something in it puts it back. An idempotency key whose metadata file is
// gone is no problem either: a repeated request is answered with the table's present version.
//
// Check may run while nodes use the store. It reports a problem only if a second look, after the
// first has ended, finds it too. It changes nothing, except that it removes the blockers of
// transactions that were given up and have ended since.
//
// Callers that come while it runs share the run, so the run may have looked at something before
// they came. It goes on until it is done, or its last caller has left.
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
