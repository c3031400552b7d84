package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// transaction is one CommitTransaction under way. It belongs to one goroutine.
type transaction struct {
	warehouse string
	keyed     bool // see commit
	parts     []*participant
	held      *documents.Share // of the room for metadata
}

// participant is a table of a transaction: one to change, to make, or only to find as it is
// required to be.
type participant struct {
	ident  moorage.Identifier
	edit   tableEdit
	create bool
	pinned bool // the transaction follows its table-uuid; see commit

	found *directory.Found   // nil for a table to be made
	base  *metadata.Document // what found names; nil likewise

	place storage.Place  // where its files are
	next  documents.File // next.Document == base: there is nothing to write
	batch registry.Batch // what makes next the current version

	// Of a table that exists: what its pointer becomes, and the index of that write among those of
	// the transaction.
	to      *directory.Found
	toWrite int
}

func (p *participant) writes() bool { return p.next.Document != p.base }

// replayed reports whether all that t asks for has happened before.
func (t *transaction) replayed() bool {
	asks := false
	if t.keyed {
		return false
	}
	for _, p := range t.parts {
		if p.create {
			return false
		}
		for _, step := range p.edit.steps {
			asks = asks || len(step.Updates) > 0
			if !p.base.IsReplay(step.Updates) {
				return false
			}
		}
	}
	return asks
}

// readParticipants reads the pointers of all tables of t that must exist, and the documents that
// they name.
func (c *Catalog) readParticipants(ctx context.Context, t *transaction) error {
	var named, pinned []*participant
	for _, p := range t.parts {
		switch {
		case p.create:
		case p.pinned && p.found != nil:
			pinned = append(pinned, p)
		default:
			named = append(named, p)
		}
	}
	if err := c.findTables(ctx, named); err != nil {
		return err
	}
	if err := c.readPinned(ctx, pinned); err != nil {
		return err
	}
	return c.readDocuments(ctx, t)
}

// findTables reads the pointers of tables that the transaction follows by their names.
func (c *Catalog) findTables(ctx context.Context, parts []*participant) error {
	idents := make([]moorage.Identifier, len(parts))
	for i, p := range parts {
		idents[i] = p.ident
	}
	found, err := c.directory.FindAll(ctx, directory.Table(), idents)
	if err != nil {
		return err
	}
	for i, p := range parts {
		p.found = found[i]
	}
	return nil
}

// readDocuments reads the documents that the pointers of t name. It reads several files at a time.
func (c *Catalog) readDocuments(ctx context.Context, t *transaction) error {
	var bytes atomic.Int64
	count := func(p *participant, document document) error {
		p.base = document.(*metadata.Document)
		if bytes.Add(int64(len(p.base.Raw()))) > c.transactionBytesMax {
			return moorage.Errorf(moorage.KindTooLarge,
				"The metadata of the tables of this transaction has more than %d bytes", c.transactionBytesMax)
		}
		return t.held.Take(ctx, documents.HeldBytes(len(p.base.Raw())))
	}
	t.held.GiveBack() // what t read before
	var others []*participant
	for _, p := range t.parts {
		if p.create {
			continue
		}
		kept := c.documents.Kept(ctx, documents.RefOf(p.found.Pointer, p.found.Storage))
		if kept == nil {
			others = append(others, p)
			continue
		}
		if err := count(p, kept); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	for _, p := range others {
		group.Go(func() error {
			if ctx.Err() != nil { // a read does not end with ctx, because others may wait for the document
				return ctx.Err()
			}
			return safely(ctx, func(ctx context.Context) error {
				document, err := c.documents.Current(ctx, p.found)
				if err != nil {
					return ofTable(p.ident, err)
				}
				return count(p, document)
			})
		})
	}
	return group.Wait()
}

// readPinned reads the pointers of tables that the transaction follows by their table-uuid,
// whatever their names are now.
func (c *Catalog) readPinned(ctx context.Context, parts []*participant) error {
	known := make([]*directory.Found, len(parts))
	for i, p := range parts {
		known[i] = p.found
	}
	now, err := c.directory.RereadAll(ctx, known)
	if err != nil {
		return err
	}
	for i, p := range parts {
		if !now[i].IsIn(p.ident.Warehouse) {
			return aTable.NoSuch(p.ident)
		}
		p.found = now[i]
	}
	return nil
}

const (
	// builderBytes is the metadata for which one more goroutine is worth while. Copying that much
	// takes some hundred microseconds, about as long as another processor takes to wake up.
	builderBytes = 2 << 20
	// buildBytes is what building any version costs: the metadata that can be copied in that time.
	buildBytes = 64 << 10
)

// builders returns in how many goroutines to build the versions of t. Building is work rather than
// waiting.
func (t *transaction) builders() int {
	bytes := buildBytes * len(t.parts)
	for _, p := range t.parts {
		if p.base != nil {
			bytes += len(p.base.Raw())
		}
	}
	return min(runtime.GOMAXPROCS(0), len(t.parts), 1+bytes/builderBytes)
}

// buildParticipants checks what each table must be like and builds its next version, against what
// was read. Each of its goroutines builds one table after the other, so its stack has to grow only
// once. The error is that of the first table, in the order of the request, that fails.
func (c *Catalog) buildParticipants(ctx context.Context, t *transaction) error {
	failures := make([]error, len(t.parts))
	var failed atomic.Bool
	var next atomic.Int64
	build := func() {
		for !failed.Load() { // tables before the one that failed go on: one of them may fail too
			i := int(next.Add(1)) - 1
			if i >= len(t.parts) {
				return
			}
			failures[i] = safely(ctx, func(ctx context.Context) error { return c.buildParticipant(ctx, t.parts[i]) })
			if failures[i] != nil {
				failed.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	for range t.builders() - 1 {
		others.Go(build)
	}
	build()
	others.Wait()
	for i, err := range failures {
		if err != nil {
			return ofTable(t.parts[i].ident, err)
		}
	}
	return nil
}

// safely calls do in a goroutine of a request and turns a panic into an error. So a panic ends
// neither the process nor the cleanup of the request. The log shows it with its place, as it does
// for the request's own goroutine. Without this an errgroup would take a goroutine that panicked
// for done, and the request would go on until the process ends.
func safely(ctx context.Context, do func(context.Context) error) error {
	err := worker.Safely(ctx, do)
	if panicked, ok := errors.AsType[*worker.PanicError](err); ok {
		return panicError("catalog.safely", "", panicked)
	}
	return err
}

// panicError returns the internal error of a request that waited for a goroutine which panicked.
// The log shows the place of the panic.
func panicError(op, ident string, panicked *worker.PanicError) error {
	return moorage.E(op, ident, moorage.KindInternal, fmt.Errorf("%w\n%s", panicked, panicked.Stack))
}

func (c *Catalog) buildParticipant(ctx context.Context, p *participant) error {
	if p.create {
		ch, born, err := c.planBirth(ctx, p.ident, p.edit.steps)
		if err != nil {
			return err
		}
		p.place = c.directory.PlaceOf(ch.Warehouse)
		p.next, err = c.documents.Name(born.kind.Kind, born.id, ch.Storage, born.document, documents.File{})
		if err != nil {
			return err
		}
		p.batch, err = c.birthBatch(ch, born, p.next.Location)
		return err
	}
	p.place = p.found.Place
	var err error
	if p.next, err = c.buildNext(p.found, p.base, &p.edit); err != nil {
		return err
	}
	if !p.writes() {
		p.batch = registry.Batch{Conditions: []registry.Condition{ledger.Unchanged(p.found.Record)}}
		return nil
	}
	moved, err := c.planMove(ctx, p.found, p.base, p.next)
	p.batch, p.to = moved.batch, moved.to
	return err
}

// batch returns what one Apply must require and write to make all of t true.
func (t *transaction) batch() (registry.Batch, error) {
	merged := registry.Batch{
		Conditions: make([]registry.Condition, 0, len(t.parts)), Writes: make([]registry.Write, 0, len(t.parts)+1),
	}
	conditions := make(map[registry.Condition]bool, len(t.parts))
	puts := make(map[registry.Key]registry.State, len(t.parts))
	for _, p := range t.parts {
		p.toWrite = len(merged.Writes)
		for _, condition := range p.batch.Conditions {
			if !conditions[condition] {
				conditions[condition] = true
				merged.Conditions = append(merged.Conditions, condition)
			}
		}
		for _, write := range p.batch.Writes {
			state, twice := puts[write.Key]
			switch {
			case !twice:
				puts[write.Key] = write.State
				merged.Writes = append(merged.Writes, write)
			case state == registry.StateBelow && write.State == registry.StateBelow: // folders above two new tables
			default:
				return registry.Batch{}, overlap(p.ident, write.Key)
			}
		}
	}
	if items := max(len(merged.Conditions), len(merged.Writes)) + 2; items > registry.BatchItemsMax {
		return registry.Batch{}, moorage.Errorf(moorage.KindBadRequest,
			"Invalid transaction: its tables need %d records to be written, or to stay as they are, at once, "+
				"at most %d are possible; each folder above a new table is one", items, registry.BatchItemsMax)
	}
	return merged, nil
}

// overlap returns the error why the change of ident and another one of its transaction exclude each
// other.
func overlap(ident moorage.Identifier, key registry.Key) error {
	switch key.Table {
	case registry.TableLocation:
		return moorage.Errorf(moorage.KindBadRequest,
			"Location of %s is, contains or lies within that of another table of the transaction: %s", ident, key.ID)
	case registry.TableUUID:
		return moorage.Errorf(moorage.KindAlreadyExists, "Another table of the transaction has the UUID of %s", ident)
	}
	return moorage.Errorf(moorage.KindCommitFailed,
		"Another change of the transaction is of the same table as %s by now", ident)
}

// participants returns what the transaction log records of the tables of t.
func (t *transaction) participants() []txlog.Participant {
	noted := make([]txlog.Participant, len(t.parts))
	for i, p := range t.parts {
		noted[i] = txlog.Participant{Ident: p.ident, Writes: p.writes()}
		if !p.create {
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

// ofTable adds the name of the table to the text of err, which a client may see.
func ofTable(ident moorage.Identifier, err error) error {
	text := moorage.MessageOf(err)
	if text == "" || strings.Contains(text, ident.String()) {
		return moorage.Annotate("", ident.String(), err)
	}
	return &moorage.Error{Kind: moorage.KindOf(err), Message: text + " (table " + ident.String() + ")", Err: err}
}
