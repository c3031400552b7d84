package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// Report is what Check found.
type Report struct {
	// Of each kind those are counted whose records can be read.
	Warehouses int      `json:"warehouses"`
	Namespaces int      `json:"namespaces"`
	Tables     int      `json:"tables"`   // live ones
	Views      int      `json:"views"`    // live ones
	Problems   []string `json:"problems"` // one sentence each, sorted; empty, never nil, if all is well
}

// Check reads all records but those of changes, of who follows them, and of claims on work, which end by themselves, and the metadata file of every table and view, and reports what should not be:
//
//   - a record that cannot be read, but nothing that is so only because it cannot: what hangs on it is looked at when it is mended;
//   - a live table (here always: or view) whose file is missing or cannot be parsed, or has another table-uuid;
//   - a name without a live table, a live table without its name or with two;
//   - a namespace without its parent;
//   - a table-uuid or location of a live table that is not claimed, or claimed by a table that does not have it;
//   - live tables whose locations nest; tasks without a table, and those that were given up;
//   - a dropped table whose purge was asked for, and has no task;
//   - a transaction that nobody ended although its deadline was over long ago.
//
// A namespace in the middle of a drop is no problem, even when whoever dropped it has died: the next
// who makes something in it puts it back. Nor is an outcome of a change that was sent with a key (see Once) whose metadata
// file is gone: then the table's present version is answered.
//
// It may run while the catalog is in use: a problem is reported only if a second look, made
// after the first has ended, finds it too. It changes nothing, except that it removes the blockers of transactions that have come to
// their end since they were given up.
//
// Callers that come while it runs share the run, so what they get may have been looked at before they came. It goes on until it is
// done, or the last of them has left.
func (c *Catalog) Check(ctx context.Context) (Report, error) {
	return c.checks.do(ctx, c.checkTwice)
}

// checkTwice is Check by itself.
func (c *Catalog) checkTwice(ctx context.Context) (Report, error) {
	const op = "catalog.Check"
	report, err := c.checkOnce(ctx)
	if err != nil || len(report.Problems) == 0 {
		return report, moorage.Annotate(op, "", err)
	}
	again, err := c.checkOnce(ctx)
	if err != nil {
		return Report{}, moorage.Annotate(op, "", err)
	}
	again.Problems = slices.DeleteFunc(again.Problems, func(problem string) bool {
		_, found := slices.BinarySearch(report.Problems, problem)
		return !found
	})
	return again, nil
}

// checker is one look at everything.
type checker struct {
	catalog    *Catalog
	report     Report
	warehouses map[string]registry.Warehouse
	namespaces map[registry.ID]namespaceAt
	levels     map[registry.Key]registry.ID // of warehouses and namespaces
	pointers   map[registry.ID]pointerAt
	named      map[registry.ID]int             // how many entries name a pointer
	identified map[registry.ID]bool            // the pointers whose table-uuid is theirs
	unfinished map[registry.ID]bool            // transactions
	blockers   map[registry.ID]registry.Record // of transactions that are gone
	tasks      map[registry.Key]bool
	unreadable map[registry.Key]error        // why; but for transactions
	callers    map[registry.Key]registry.Key // of pointers that cannot be read, the entries
}

type namespaceAt struct {
	warehouse, parent registry.ID
	name              string
}

type pointerAt struct {
	value registry.Pointer
	state registry.State
}

// String names p in a problem.
func (p pointerAt) String() string {
	return fmt.Sprintf("%s %s (%s)", strings.ToLower(kindOf(p.value).Noun), p.value.Identifier(), p.value.ID)
}

// awaits tells whether a dropped table is to be purged by task.
func (p pointerAt) awaits(task registry.Key) bool {
	return p.state.IsDropped() && !p.value.Task.IsZero() && registry.TaskKey(p.value.Task) == task
}

func (c *Catalog) checkOnce(ctx context.Context) (Report, error) {
	k := &checker{
		catalog:    c,
		report:     Report{Problems: []string{}},
		warehouses: map[string]registry.Warehouse{},
		namespaces: map[registry.ID]namespaceAt{},
		levels:     map[registry.Key]registry.ID{},
		pointers:   map[registry.ID]pointerAt{},
		named:      map[registry.ID]int{},
		identified: map[registry.ID]bool{},
		unfinished: map[registry.ID]bool{},
		blockers:   map[registry.ID]registry.Record{},
		tasks:      map[registry.Key]bool{},
		unreadable: map[registry.Key]error{},
		callers:    map[registry.Key]registry.Key{},
	}
	// In an order in which what a record names is read before the record itself.
	if err := k.transactions(ctx); err != nil {
		return Report{}, err
	}
	for _, step := range []struct {
		table registry.Table
		visit func(registry.Record)
	}{
		{registry.TableWarehouse, k.warehouse},
		{registry.TableNamespace, k.namespace},
		{registry.TablePointer, k.pointer},
		{registry.TableEntry, k.entry},
		{registry.TableUUID, k.uuid},
		{registry.TableTask, k.task},
		{registry.TableIdempotency, k.outcome},
	} {
		err := c.ledger.Scan(ctx, step.table, "", "", func(record registry.Record) (bool, error) {
			step.visit(record)
			return ctx.Err() == nil, nil
		})
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return Report{}, err
		}
	}
	k.parents()
	k.names()
	k.purges()
	if err := k.removeBlockers(ctx); err != nil {
		return Report{}, err
	}
	if err := k.locations(ctx); err != nil {
		return Report{}, err
	}
	if err := k.files(ctx); err != nil {
		return Report{}, err
	}
	k.unread()
	slices.Sort(k.report.Problems)
	return k.report, nil
}

func (k *checker) problem(format string, args ...any) {
	k.report.Problems = append(k.report.Problems, fmt.Sprintf(format, args...))
}

func (k *checker) warehouse(record registry.Record) {
	value, ok := readRecord[registry.Warehouse](k, record, registry.StateLive, registry.StateDropping)
	if !ok || !k.identifies(record, value.ID) {
		return
	}
	k.report.Warehouses++
	k.warehouses[record.Key.ID] = value
	k.namespaces[value.ID] = namespaceAt{name: record.Key.ID}
	k.levels[record.Key] = value.ID
}

func (k *checker) namespace(record registry.Record) {
	value, ok := readRecord[registry.Namespace](k, record, registry.StateLive, registry.StateDropping)
	if !ok || !k.identifies(record, value.ID) {
		return
	}
	at, err := splitNamespaceKey(record.Key)
	if err != nil {
		k.unreadable[record.Key] = err
		return
	}
	k.report.Namespaces++
	k.namespaces[value.ID] = at
	k.levels[record.Key] = value.ID
}

// splitNamespaceKey reads what NamespaceKey made.
func splitNamespaceKey(key registry.Key) (namespaceAt, error) {
	parts := strings.SplitN(key.ID, "/", 3)
	if len(parts) != 3 {
		return namespaceAt{}, fmt.Errorf("malformed key %s", key)
	}
	at := namespaceAt{name: parts[2]}
	if err := at.warehouse.UnmarshalText([]byte(parts[0])); err != nil {
		return at, fmt.Errorf("malformed key %s: %w", key, err)
	}
	if err := at.parent.UnmarshalText([]byte(parts[1])); err != nil {
		return at, fmt.Errorf("malformed key %s: %w", key, err)
	}
	return at, nil
}

func (k *checker) pointer(record registry.Record) {
	value, ok := readRecord[registry.Pointer](k, record, registry.StateLive, registry.StateDropped, registry.StatePurging)
	if !ok {
		return
	}
	if registry.PointerKey(value.ID) != record.Key {
		k.unreadable[record.Key] = fmt.Errorf("it holds the pointer %s", value.ID)
		return
	}
	switch {
	case record.State != registry.StateLive:
	case value.View:
		k.report.Views++
	default:
		k.report.Tables++
	}
	k.pointers[value.ID] = pointerAt{value, record.State}
}

func (k *checker) entry(record registry.Record) {
	value, ok := readRecord[registry.Entry](k, record, registry.StateTable, registry.StateView)
	if !ok || !k.identifies(record, value.Pointer) {
		return
	}
	if named := registry.PointerKey(value.Pointer); k.hidden(named) {
		k.callers[named] = record.Key
		return
	}
	pointer, ok := k.pointers[value.Pointer]
	key := registry.EntryKey(pointer.value.NamespaceID, pointer.value.Name)
	switch {
	case !ok:
		k.problem("entry %s names a table that does not exist", record.Key)
	case pointer.state != registry.StateLive:
		k.problem("entry %s names a table that is %s", record.Key, pointer.state)
	case key != record.Key:
		k.problem("entry %s names a table that is called %s", record.Key, key)
	case kindOf(pointer.value).State != record.State:
		k.problem("entry %s, of a %s, names what is none", record.Key, record.State)
	default:
		k.named[value.Pointer]++
	}
	if value.Shard != registry.Shard(strings.TrimPrefix(record.Key.ID, registry.EntryPrefix(pointer.value.NamespaceID))) && ok {
		k.problem("entry %s is in the wrong shard", record.Key)
	}
}

func (k *checker) uuid(record registry.Record) {
	value, ok := readRecord[registry.TableUUIDClaim](k, record, registry.StateNone)
	if !ok || !k.identifies(record, value.Pointer) || k.hidden(registry.PointerKey(value.Pointer)) {
		return
	}
	pointer, ok := k.pointers[value.Pointer]
	if !ok || registry.UUIDKey(pointer.value.TableUUID) != record.Key {
		k.problem("%s is claimed by a table that does not have it", record.Key)
		return
	}
	k.identified[value.Pointer] = true
}

// outcome looks at what became of a change that was sent with a key: nothing is asked of it but that it can be read.
func (k *checker) outcome(record registry.Record) {
	readRecord[registry.Idempotency](k, record, registry.StateNone)
}

// recoveryGrace is how long after its deadline a transaction may stay without being given up: longer than the workers
// leave it alone for its tables' locks, and than they try.
const recoveryGrace = recoverLockPatience + 10*time.Minute

// transactions reports those that no worker seems to see, and those that none can read. Of the files that one published nothing is asked
// here: while a pointer names them they are looked at with it, and later they may be gone.
func (k *checker) transactions(ctx context.Context) error {
	for entry, err := range k.catalog.transactions.All(ctx) {
		if err != nil {
			return ledger.StepError("catalog.check", err)
		}
		k.unfinished[entry.ID] = true
		k.transaction(entry)
	}
	return nil
}

func (k *checker) transaction(entry txlog.Entry) {
	key := registry.TransactionKey(entry.ID)
	if entry.ID.IsZero() {
		k.problem("a transaction, which is %s, cannot be read: %s (restore a backup, or remove the record from the database)", entry.State, entry.Unreadable)
		return
	}
	if entry.Unreadable != nil {
		k.problem("%s, which is %s, cannot be read: %s (see moorage recover)", key, entry.State, entry.Unreadable)
		return
	}
	deadline := entry.Deadline
	if made := k.catalog.made; k.catalog.abortPending && deadline.Before(made) {
		deadline = made // nobody had the store open before
	}
	if k.catalog.now().Sub(deadline) > recoveryGrace {
		k.problem("%s is %s, and its deadline was %s", key, entry.State, entry.Deadline.Format(time.RFC3339))
	}
}

func (k *checker) task(record registry.Record) {
	k.tasks[record.Key] = true
	value, err := readTask(record)
	if err != nil {
		k.unreadable[record.Key] = err
		return
	}
	if record.State == registry.StateBlocked {
		k.problem("%s is blocked after %d attempts: %s (see moorage recover)", record.Key, value.Attempts, value.LastError)
	}
	if value.Kind == registry.TaskRecovery {
		if !k.unfinished[value.ID] {
			k.blockers[value.ID] = record
		}
		return
	}
	if k.hidden(registry.PointerKey(value.Pointer)) {
		return
	}
	if pointer, ok := k.pointers[value.Pointer]; !ok || pointer.state == registry.StateLive || pointer.value.Task != value.ID {
		k.problem("%s belongs to no dropped table", record.Key)
	}
}

// removeBlockers removes what is left of transactions that came to their end after they were given up.
func (k *checker) removeBlockers(ctx context.Context) error {
	for transaction, blocker := range k.blockers {
		if _, err := k.catalog.dropEnded(ctx, blocker, transaction); err != nil {
			return err
		}
	}
	return nil
}

// purges reports dropped tables that nobody will purge although that was asked for, nor forget.
func (k *checker) purges() {
	for _, pointer := range k.pointers {
		if task := registry.TaskKey(pointer.value.Task); pointer.awaits(task) && !k.tasks[task] {
			k.problem("%s is %s and awaits %s, which does not exist", pointer, pointer.state, task)
		}
	}
}

// parents reports namespaces whose parent is gone.
func (k *checker) parents() {
	for id, at := range k.namespaces {
		if at.parent.IsZero() {
			continue // a warehouse
		}
		if _, ok := k.namespaces[at.parent]; !ok && !k.hiddenIn(at.warehouse) {
			k.problem("namespace %s (%s) has no parent", at.name, id)
		}
	}
}

// names reports live tables that do not have their table-uuid to themselves, or not exactly one name, in a
// namespace that exists under the path that the table believes it is in.
func (k *checker) names() {
	for id, pointer := range k.pointers {
		if pointer.state != registry.StateLive {
			continue
		}
		if k.named[id] != 1 && !k.hidden(registry.EntryKey(pointer.value.NamespaceID, pointer.value.Name)) {
			k.problem("%s has %d names", pointer, k.named[id])
		}
		if !k.identified[id] && !k.hidden(registry.UUIDKey(pointer.value.TableUUID)) {
			k.problem("%s does not hold its table-uuid", pointer)
		}
		if path := k.path(pointer.value.NamespaceID); !path.Equal(pointer.value.Namespace) && !k.hiddenPath(pointer.value.Warehouse, pointer.value.Namespace) {
			k.problem("%s is in namespace %q", pointer, path)
		}
	}
}

// path returns the names that lead to a namespace, nil if it does not exist or does not lie in a warehouse.
func (k *checker) path(id registry.ID) moorage.Namespace {
	var path moorage.Namespace
	for range len(k.namespaces) { // more there cannot be, unless one lies within itself
		at, ok := k.namespaces[id]
		if !ok {
			return nil
		}
		if at.parent.IsZero() {
			slices.Reverse(path)
			return path
		}
		path = append(path, at.name)
		id = at.parent
	}
	return nil
}

// locations reports claims that do not belong to the table that lives there, and live tables that
// live within each other.
func (k *checker) locations(ctx context.Context) error {
	held := map[string]registry.ID{}
	err := k.catalog.ledger.Scan(ctx, registry.TableLocation, "", "", func(record registry.Record) (bool, error) {
		value, ok := readRecord[registry.LocationClaim](k, record, registry.StateOwner, registry.StateBelow, registry.StateDropping)
		if record.State != registry.StateOwner {
			return true, ctx.Err()
		}
		held[record.Key.ID] = value.Pointer
		if !ok || !k.identifies(record, value.Pointer) || k.hidden(registry.PointerKey(value.Pointer)) {
			return true, ctx.Err()
		}
		if pointer, ok := k.pointers[value.Pointer]; !ok || !slices.Contains(pointer.value.Claims, record.Key.ID) {
			k.problem("%s is claimed by a table that does not know of it", record.Key)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for id, pointer := range k.pointers {
		if pointer.state != registry.StateLive {
			continue
		}
		for _, claim := range pointer.value.Claims {
			if held[claim] != id && !k.hidden(registry.LocationKey(claim)) {
				k.problem("%s does not hold its claim of %s", pointer, claim)
			}
			k.nesting(held, claim)
		}
	}
	return nil
}

// nesting reports if a folder above claim is the location of another table.
func (k *checker) nesting(held map[string]registry.ID, claim string) {
	for at := strings.LastIndexByte(claim, '/'); at > 0; at = strings.LastIndexByte(claim[:at], '/') {
		if _, ok := held[claim[:at]]; ok {
			k.problem("the location %s lies within that of another table, %s", claim, claim[:at])
		}
	}
}

// files reports live tables whose metadata file is missing, does not parse or is not theirs. Of a dropped
// table nothing is asked: some engines delete the files themselves once the name is gone.
func (k *checker) files(ctx context.Context) error {
	for _, pointer := range k.pointers {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if pointer.state != registry.StateLive || k.hidden(registry.WarehouseKey(pointer.value.Warehouse)) {
			continue
		}
		document, err := k.readDocument(ctx, pointer.value)
		switch {
		case moorage.KindOf(err) == moorage.KindNotFound:
			k.problem("%s: its metadata file %s is missing", pointer, pointer.value.MetadataLocation)
		case err != nil:
			k.problem("%s: %s", pointer, err)
		case !strings.EqualFold(document.UUID(), pointer.value.TableUUID):
			k.problem("%s: the metadata file has the table-uuid %s, not %s", pointer, document.UUID(), pointer.value.TableUUID)
		}
	}
	return nil
}

// readDocument reads a table's document, wherever the table was allowed to be when it was made: the server
// that is asked to check may have been told of fewer locations.
func (k *checker) readDocument(ctx context.Context, pointer registry.Pointer) (document, error) {
	warehouse, ok := k.warehouses[pointer.Warehouse]
	if ok && (pointer.Storage == nil || maps.Equal(pointer.Storage, warehouse.Storage)) {
		document, err := k.readAt(ctx, pointer, k.catalog.directory.PlaceOf(warehouse))
		if !errors.Is(err, storage.ErrOutside) {
			return document, err
		}
	}
	return k.readAt(ctx, pointer, storage.Place{Roots: pointer.Claims, Options: pointer.Storage})
}

// readAt reads a table's document in a place, without making the folders that the place should have.
func (k *checker) readAt(ctx context.Context, pointer registry.Pointer, place storage.Place) (document, error) {
	store, giveBack, err := k.catalog.directory.Borrow(ctx, place)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	return k.catalog.readDocument(ctx, kindOf(pointer), pointer.Warehouse, store, pointer.MetadataLocation)
}
