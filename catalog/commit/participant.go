package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/internal/trace"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// transaction is an edit of several tables that is in progress. It belongs to one goroutine.
type transaction struct {
	*work
	*Pipeline
	warehouse string
	parts     []*participant
	held      *documents.Share // its share of the memory for metadata
	until     time.Time        // the time when it stops waiting for locks
}

// participant is a table of a transaction. The transaction changes it, creates it, or only checks
// its requirements.
type participant struct {
	Target
	pinned bool // the table is found by its table-uuid; see edition

	found *directory.Found   // nil for a new table
	base  documents.Document // the document named in found; nil for a new table

	place storage.Place  // where its files are
	next  documents.File // nothing to write if next.Document == base
	plan  *Plan          // makes next the current version

	// For an existing table: its pointer after the change, and the index of that write among the
	// writes of the transaction.
	to      *directory.Found
	toWrite int
}

func (p *Pipeline) newTransaction(w *work) *transaction {
	t := &transaction{
		work: w, Pipeline: p, warehouse: w.Edits[0].Ident.Warehouse, parts: make([]*participant, len(w.Edits)),
	}
	for i, target := range w.Edits {
		t.parts[i] = &participant{Target: target, pinned: target.Edit.Pins()}
	}
	return t
}

func (p *participant) writes() bool { return p.next.Document != p.base }

// replayed reports whether all edits of t have already happened.
func (t *transaction) replayed() bool {
	asks := false
	if t.key != nil {
		return false
	}
	for _, part := range t.parts {
		if part.Create != nil || !part.Edit.Replays(part.base) {
			return false
		}
		asks = asks || part.Edit.Asks()
	}
	return asks
}

// readParticipants reads the pointers of all existing tables of t, and their documents.
func (t *transaction) readParticipants(ctx context.Context) (err error) {
	ctx, span := trace.Start(ctx, "resolve")
	defer func() { span.End(err) }()
	var named, pinned []*participant
	for _, part := range t.parts {
		switch {
		case part.Create != nil:
		case part.pinned && part.found != nil:
			pinned = append(pinned, part)
		default:
			named = append(named, part)
		}
	}
	if err := t.findTables(ctx, named); err != nil {
		return err
	}
	if err := t.readPinned(ctx, pinned); err != nil {
		return err
	}
	if err := t.mayAll(ctx); err != nil {
		return err
	}
	return t.readDocuments(ctx)
}

// findTables reads the pointers of tables that the transaction finds by name.
func (t *transaction) findTables(ctx context.Context, parts []*participant) error {
	idents := make([]moorage.Identifier, len(parts))
	for i, part := range parts {
		idents[i] = part.Ident
	}
	found, err := t.directory.FindAll(ctx, directory.Table(), idents)
	if err != nil {
		return t.firstRefusal(ctx, parts, err)
	}
	for i, part := range parts {
		part.found = found[i]
	}
	return nil
}

// firstRefusal returns the first refusal that the caller of t gets for one of parts, for any
// reason. If there is no such refusal, it returns err, the error with which finding the tables
// failed. So the refusal for a hidden table is the same as for a missing table.
func (t *transaction) firstRefusal(ctx context.Context, parts []*participant, err error) error {
	for _, part := range parts {
		_, refusal := t.directory.FindFor(ctx, t.asker(), part.Asks, part.Kind, part.Ident)
		if refusal != nil {
			return refusal
		}
	}
	return err
}

// mayAll returns the refusal of the first table that the caller of t may not change.
func (t *transaction) mayAll(ctx context.Context) error {
	for _, part := range t.parts {
		if part.Create != nil {
			continue
		}
		err := t.directory.May(ctx, t.asker(), part.Asks, part.found, part.Ident)
		if err == nil {
			err = OfTable(part.Ident, part.admit(ctx, part.found))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDocuments reads the documents of the pointers of t, several files concurrently.
func (t *transaction) readDocuments(ctx context.Context) error {
	var bytes atomic.Int64
	count := func(part *participant, document documents.Document) error {
		part.base = document
		if bytes.Add(int64(len(part.base.Raw()))) > t.transactionBytes {
			return moorage.Errorf(moorage.KindTooLarge,
				"The metadata of the tables of this transaction has more than %d bytes",
				t.transactionBytes)
		}
		return t.held.Take(ctx, documents.HeldBytes(len(part.base.Raw())))
	}
	t.held.GiveBack() // frees the previous documents of t
	var others []*participant
	for _, part := range t.parts {
		if part.Create != nil {
			continue
		}
		kept := t.documents.Kept(ctx, documents.RefOf(part.found.Pointer, part.found.Storage))
		if kept == nil {
			others = append(others, part)
			continue
		}
		if err := count(part, kept); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(FilesAtOnce)
	for _, part := range others {
		group.Go(func() error {
			if ctx.Err() != nil { // a read does not stop with ctx, because others may wait for the document
				return ctx.Err()
			}
			return safely(ctx, func(ctx context.Context) error {
				document, err := t.documents.Current(ctx, part.found)
				if err != nil {
					return OfTable(part.Ident, err)
				}
				return count(part, document)
			})
		})
	}
	return group.Wait()
}

// readPinned reads the pointers of tables that the transaction finds by table-uuid, whatever their
// present names are.
func (t *transaction) readPinned(ctx context.Context, parts []*participant) error {
	known := make([]*directory.Found, len(parts))
	for i, part := range parts {
		known[i] = part.found
	}
	now, err := t.directory.RereadAll(ctx, known)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if !now[i].IsIn(part.Ident.Warehouse) {
			err := part.Kind.NoSuch(part.Ident)
			return t.directory.Missing(ctx, t.asker(), part.Ident.Warehouse, err)
		}
		part.found = now[i]
	}
	return nil
}

// buildParticipants checks the requirements of each table and builds its next version from the
// version that was read. change is the change that commits them. It returns the error of the first
// failing table, in the order of the request.
func (t *transaction) buildParticipants(ctx context.Context, change registry.Change) error {
	failures := make([]error, len(t.parts))
	var failed atomic.Bool // parts begin in order, so a part after a failed part need not begin
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // building is CPU-bound
	for i, part := range t.parts {
		build := func() error {
			if !failed.Load() {
				failures[i] = safely(ctx, func(ctx context.Context) error {
					return t.buildParticipant(ctx, change, part)
				})
			}
			if failures[i] != nil {
				failed.Store(true)
			}
			return nil
		}
		if part.Create != nil { // Create queries the store, which requests do sequentially
			_ = build()
			continue
		}
		group.Go(build)
	}
	_ = group.Wait() // the errors are in failures
	for i, err := range failures {
		if err != nil {
			return OfTable(t.parts[i].Ident, err)
		}
	}
	return nil
}

// safely calls do in a goroutine of a request and turns a panic into an error. So a panic neither
// ends the process nor prevents the cleanup of the request. The log contains the panic's stack, as
// it does for the request's own goroutine. Without safely, an errgroup would treat a goroutine that
// panicked as done, and the request would continue until the process ends.
func safely(ctx context.Context, do func(context.Context) error) error {
	err := worker.Safely(ctx, do)
	if panicked, ok := errors.AsType[*worker.PanicError](err); ok {
		return panicError("commit.safely", "", panicked)
	}
	return err
}

// panicError returns the internal error for a request whose goroutine panicked. The log contains
// the stack of the panic.
func panicError(op, ident string, panicked *worker.PanicError) error {
	return moorage.E(op, ident, moorage.KindInternal, fmt.Errorf("%w\n%s", panicked, panicked.Stack))
}

func (t *transaction) buildParticipant(ctx context.Context, change registry.Change, part *participant) (err error) {
	if part.Create != nil {
		// A silent intent stores no answer, so the attempt has no key.
		if part.plan, err = part.Create(ctx, &Attempt{Now: t.now(), Change: change}); err == nil {
			part.place, part.next = part.plan.Place, part.plan.File
		}
		return err
	}
	part.place = part.found.Place
	built, err := nextVersion(t.now(), part.found, part.base, part.Edit)
	if err != nil {
		return err
	}
	if part.next, err = t.name(part.found, part.base, built); err != nil {
		return err
	}
	if !part.writes() {
		part.plan = &Plan{Conditions: []registry.Condition{ledger.Unchanged(part.found.Record)}}
		return nil
	}
	by := mover{change, []*work{t.work}, part.Edit.Actions()}
	part.to, part.plan, err = t.planMove(ctx, by, part.found, part.base, part.next)
	return err
}

// batch returns the conditions and writes of the one Apply that commits t.
func (t *transaction) batch() (registry.Batch, error) {
	merged := registry.Batch{
		Conditions: make([]registry.Condition, 0, len(t.parts)), Writes: make([]registry.Write, 0, len(t.parts)+1),
	}
	conditions := make(map[registry.Condition]bool, len(t.parts))
	puts := make(map[registry.Key]registry.State, len(t.parts))
	for _, p := range t.parts {
		p.toWrite = len(merged.Writes)
		for _, condition := range p.plan.Conditions {
			if !conditions[condition] {
				conditions[condition] = true
				merged.Conditions = append(merged.Conditions, condition)
			}
		}
		for _, write := range p.plan.Writes {
			state, twice := puts[write.Key]
			switch {
			case !twice:
				puts[write.Key] = write.State
				merged.Writes = append(merged.Writes, write)
			case state == registry.StateBelow && write.State == registry.StateBelow: // folders above two new tables
			case registry.IsMakerKey(write.Key): // two new tables in one namespace
			default:
				return registry.Batch{}, overlap(p.Ident, write.Key)
			}
		}
	}
	if items := max(len(merged.Conditions), len(merged.Writes)) + 2; items > registry.BatchItemsMax {
		return registry.Batch{}, moorage.Errorf(moorage.KindBadRequest,
			"Invalid transaction: its tables need %d records to be written or unchanged at once, "+
				"at most %d are possible; each folder above a new table is one", items, registry.BatchItemsMax)
	}
	return merged, nil
}

// overlap returns the error for a change of ident that conflicts with another change of its
// transaction.
func overlap(ident moorage.Identifier, key registry.Key) error {
	switch key.Table {
	case registry.TableLocation:
		return moorage.Errorf(moorage.KindBadRequest,
			"Location of %s is, contains or lies within that of another table of the transaction: %s", ident, key.ID)
	case registry.TableUUID:
		return moorage.Errorf(moorage.KindAlreadyExists, "Another table of the transaction has the UUID of %s", ident)
	}
	return moorage.Errorf(moorage.KindCommitFailed,
		"Another change of the transaction is for the same table as %s", ident)
}

// participants returns the tables of t in the form of the transaction log.
func (t *transaction) participants() []txlog.Participant {
	noted := make([]txlog.Participant, len(t.parts))
	for i, p := range t.parts {
		noted[i] = txlog.Participant{Ident: p.Ident, Writes: p.writes()}
		if p.Create == nil {
			noted[i].Pointer, noted[i].ETag = p.found.Pointer.ID, p.found.Record.ETag
		}
	}
	return noted
}

// files returns the metadata files that t writes.
func (t *transaction) files() []documents.File {
	files := make([]documents.File, 0, len(t.parts))
	for _, p := range t.parts {
		if p.writes() {
			files = append(files, p.next)
		}
	}
	return files
}

func locationsOf(files []documents.File) []string {
	locations := make([]string, len(files))
	for i, file := range files {
		locations[i] = file.Location
	}
	return locations
}

// OfTable adds the name of the table to the text of err, which a client may see. It adds no name to
// a KindNoSuchWarehouse error, which applies to all tables. The text of that error must be the same
// whether the warehouse is missing or hidden from the caller.
func OfTable(ident moorage.Identifier, err error) error {
	text := moorage.MessageOf(err)
	if text == "" || moorage.KindOf(err) == moorage.KindNoSuchWarehouse || strings.Contains(text, ident.String()) {
		return moorage.Annotate("", ident.String(), err)
	}
	return &moorage.Error{
		Ident: ident.String(), Kind: moorage.KindOf(err), Message: text + " (table " + ident.String() + ")", Err: err,
	}
}
