// Package check finds out whether all records and metadata files of a store are consistent. Tests,
// the command line and the management API use it.
//
// # What it promises
//
// Check finds every fault that is listed in the comment of the function Check. It may run while
// nodes use the store. It makes two passes (looks), and reports the faults that both found. Check
// changes nothing, except that it removes the blockers of transactions that have ended. An
// unreadable record counts as one problem, and does not hide other problems.
//
// # How it works
//
// One look (look.go) reads the tables of the registry. If one record refers to another, the look
// reads the second one first. The look holds all pointers in memory. unreadable.go finds out what
// an unreadable record belongs to. Concurrent callers share one run (shared.go).
//
// # What it must not know
//
// It does not know how the catalog changes records, takes locks, or caches. Config.Files opens
// storages and parses files.
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
	// PlaceOf returns the place for the tables of a warehouse: its locations, and how to reach
	// them.
	PlaceOf(warehouse registry.Warehouse) storage.Place
	// OwnPlaceOf returns the locations that a table has claimed, with the access settings in the
	// table's own record.
	OwnPlaceOf(pointer registry.Pointer) storage.Place
	// UUIDIn returns the table-uuid or view-uuid in the metadata file of a pointer. It reads the
	// file through place, and creates no folder. A missing file is KindNotFound, and a file outside
	// place is storage.ErrOutside. If the storage does not answer, or refuses, the error is
	// KindUnavailable or KindInternal.
	UUIDIn(ctx context.Context, place storage.Place, pointer registry.Pointer) (string, error)
	// StatIn returns nil if a file exists at location, which must be inside place. If there is
	// none, it returns storage.ErrNotFound.
	StatIn(ctx context.Context, place storage.Place, location string) error
}

// Config configures a Checker. Deps and Files are required.
type Config struct {
	ledger.Deps
	Files Files
	// Opened is the time when this process opened the store for exclusive use. If the deadline of a
	// transaction was before Opened, the transaction counts as due since Opened. Zero means that
	// other processes may have the store open.
	Opened time.Time
}

// Report is the result of Check.
type Report struct {
	// The counts below cover only readable records, and only tables and views that are live.
	Warehouses int
	Namespaces int
	Tables     int
	Views      int
	// Problems has one sentence for each problem, sorted. It is empty, not nil, if there are no
	// problems.
	Problems []string
	// Unread has a sentence for each storage whose files could not be read, with the reason. It is
	// sorted. If there are no such storages, it is empty, not nil. The state of these files is
	// unknown.
	Unread []string
}

// Checker checks a whole store. It is safe for concurrent use.
type Checker struct {
	config       Config
	ledger       *ledger.Ledger
	transactions *txlog.Log
	runs         runs
}

// New returns a Checker of the store in config.
func New(config Config) *Checker {
	return &Checker{config: config, ledger: config.Ledger, transactions: txlog.New(config.Ledger)}
}

// Check reads all records, and the metadata file of every live table and view. It leaves out
// records that expire: change records, assignments, and the records of readers of changes. It
// reports the following, where "table" also means a view:
//
//   - an unreadable record; faults that depend on that record are not reported until it is
//     repaired;
//   - a live table whose file is missing, cannot be parsed, or has a different table-uuid;
//   - a name without a live table, a live table without its name or with two names;
//   - a namespace without its parent;
//   - a table-uuid or location of a live table without a claim, or a claim that refers to a table
//     with a different table-uuid or location;
//   - live tables whose locations are inside each other; tasks without a table; tasks that were
//     given up;
//   - a dropped table whose purge was requested, but that has no task;
//   - a transaction that is still unfinished long after its deadline;
//   - a record of the due index without a matching schedule, or a schedule without its due record;
//   - a maintenance job whose table is long gone, or whose files are missing; a lease on a table
//     that is gone;
//   - labels to which no table refers, and tables whose labels are missing;
//   - grants on objects that are gone or have moved; access policy in a store with access control
//     off;
//   - a live table at a location that its warehouse does not allow in this process, so that the
//     table cannot be loaded.
//
// A storage that does not answer, or refuses all reads, is not a problem of the store. Check tries
// it a few times at most, and lists it in Report.Unread.
//
// Two states are not problems. One is a namespace whose drop is unfinished, even if the node that
// dropped it has died. The next operation that creates an object in the namespace restores it. The
// other is an idempotency key whose metadata file is gone. A repeated request is answered with the
// table's present version.
//
// Check may run while nodes use the store. It reports a problem only if a second look finds it
// again after the first look has ended. It changes nothing, except that it removes the blockers of
// transactions that were given up and have since ended.
//
// Callers that arrive during a run share its result. So the run may have read a record before such
// a caller called. A run continues until it is done, or until its last caller has left.
func (c *Checker) Check(ctx context.Context) (Report, error) {
	return c.runs.do(ctx, c.lookTwice)
}

// lookTwice is one run of Check, with two looks.
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
