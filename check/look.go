package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// recoveryGrace is the time for which a transaction may be unfinished, without being given up,
// after its deadline. Recovery first waits for the locks of the transaction's tables, and then
// tries to end it. recoveryGrace is longer than both together.
const recoveryGrace = txlog.LockPatience + 10*time.Minute

// look is one pass over the whole store.
type look struct {
	*Checker

	report     Report
	warehouses map[string]registry.Warehouse
	namespaces map[registry.ID]namespaceAt
	levels     map[registry.Key]registry.ID // the ids of warehouses and namespaces, by the keys of their records
	pointers   map[registry.ID]pointerAt
	named      map[registry.ID]int           // number of entries for each pointer
	identified map[registry.ID]bool          // pointers that the claim of their table-uuid names
	labelled   map[registry.ID]bool          // pointers whose labels exist in the right version
	unfinished map[registry.ID]bool          // transactions
	ended      []registry.ID                 // transactions that have ended and have a blocker
	tasks      map[registry.Key]bool         // the keys of all tasks
	waiting    map[registry.Key]bool         // the records of waiting purges
	unreadable map[registry.Key]error        // why a record cannot be read, except for transactions
	callers    map[registry.Key]registry.Key // the entries of unreadable pointers
	granted    map[registry.Key]policyAt
	policy     int  // number of records of access policy
	on         bool // access control is on
	storages   *answering
}

type namespaceAt struct {
	warehouse, parent registry.ID
	name              string
	granted           bool
}

type pointerAt struct {
	value registry.Pointer
	state registry.State
}

// kindOf returns the noun for a pointer, and the state of its entry.
func kindOf(pointer registry.Pointer) (noun string, entry registry.State) {
	if pointer.View {
		return "view", registry.StateView
	}
	return "table", registry.StateTable
}

// String returns the text for p in a problem.
func (p pointerAt) String() string {
	noun, _ := kindOf(p.value)
	return fmt.Sprintf("%s %s.%s (%s)", noun, p.value.Warehouse, p.value.Identifier(), p.value.ID)
}

// awaits reports whether p, a dropped table, waits for the purge with this task.
func (p pointerAt) awaits(task registry.Key) bool {
	return p.state.IsDropped() && !p.value.Task.IsZero() && registry.TaskKey(p.value.Task) == task
}

func (c *Checker) lookOnce(ctx context.Context, storages *answering) (Report, error) {
	l := &look{
		Checker:    c,
		report:     Report{Problems: []string{}},
		storages:   storages,
		warehouses: map[string]registry.Warehouse{},
		namespaces: map[registry.ID]namespaceAt{},
		levels:     map[registry.Key]registry.ID{},
		pointers:   map[registry.ID]pointerAt{},
		named:      map[registry.ID]int{},
		identified: map[registry.ID]bool{},
		labelled:   map[registry.ID]bool{},
		unfinished: map[registry.ID]bool{},
		tasks:      map[registry.Key]bool{},
		waiting:    map[registry.Key]bool{},
		unreadable: map[registry.Key]error{},
		callers:    map[registry.Key]registry.Key{},
		granted:    map[registry.Key]policyAt{},
	}
	m := &maintained{look: l, dues: map[tableKind][]registry.Key{}, required: map[tableKind]registry.Key{}}
	// If one record refers to another, the look reads the second one first.
	if err := l.readTransactions(ctx); err != nil {
		return Report{}, err
	}
	for _, step := range []struct {
		table registry.Table
		visit func(registry.Record)
	}{
		{registry.TableAccess, l.access},
		{registry.TablePrincipal, l.principal},
		{registry.TableRole, l.role},
		{registry.TableGrants, l.grants},
		{registry.TableWarehouse, l.warehouse},
		{registry.TableNamespace, l.namespace},
		{registry.TablePointer, l.pointer},
		{registry.TableEntry, l.entry},
		{registry.TableUUID, l.uuid},
		{registry.TableLabel, l.label},
		{registry.TableDropped, l.dropped},
		{registry.TableTask, l.task},
		{registry.TableIdempotency, l.outcome},
		{registry.TableLease, m.lease},
		{registry.TableSchedule, m.schedule},
		{registry.TableDue, m.due},
		{registry.TableRun, m.run},
		{registry.TableMaintenancePolicy, m.rule},
		{registry.TableJob, m.job},
	} {
		if err := l.scan(ctx, step.table, step.visit); err != nil {
			return Report{}, err
		}
	}
	l.parents()
	l.names()
	l.purges()
	l.labels()
	l.policies()
	for _, step := range []func(context.Context) error{l.removeBlockers, l.locations, l.files, m.report} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	l.unread()
	slices.Sort(l.report.Problems)
	l.report.Unread = storages.unread()
	return l.report, nil
}

// scan calls visit for each record of table.
func (l *look) scan(ctx context.Context, table registry.Table, visit func(registry.Record)) error {
	return l.ledger.Scan(ctx, table, "", "", func(record registry.Record) (bool, error) {
		visit(record)
		return true, ctx.Err()
	})
}

func (l *look) problem(format string, args ...any) {
	l.report.Problems = append(l.report.Problems, fmt.Sprintf(format, args...))
}

func (l *look) warehouse(record registry.Record) {
	value, ok := readRecord[registry.Warehouse](l, record, registry.StateLive, registry.StateDropping)
	if !ok || !l.identifies(record, value.ID) {
		return
	}
	l.report.Warehouses++
	l.warehouses[record.Key.ID] = value
	l.namespaces[value.ID] = namespaceAt{name: record.Key.ID, granted: value.Granted}
	l.levels[record.Key] = value.ID
}

func (l *look) namespace(record registry.Record) {
	value, ok := readRecord[registry.Namespace](l, record, registry.StateLive, registry.StateDropping)
	if !ok || !l.identifies(record, value.ID) {
		return
	}
	at, err := splitNamespaceKey(record.Key)
	if err != nil {
		l.unreadable[record.Key] = err
		return
	}
	l.report.Namespaces++
	at.granted = value.Granted
	l.namespaces[value.ID] = at
	l.levels[record.Key] = value.ID
}

// splitNamespaceKey parses a key of registry.NamespaceKey.
func splitNamespaceKey(key registry.Key) (namespaceAt, error) {
	parts := strings.SplitN(key.ID, "/", 3)
	if len(parts) != 3 {
		return namespaceAt{}, fmt.Errorf("malformed key %s", key)
	}
	at := namespaceAt{name: parts[2]}
	err := cmp.Or(at.warehouse.UnmarshalText([]byte(parts[0])), at.parent.UnmarshalText([]byte(parts[1])))
	if err != nil {
		return at, fmt.Errorf("malformed key %s: %w", key, err)
	}
	return at, nil
}

func (l *look) pointer(record registry.Record) {
	value, ok := readRecord[registry.Pointer](l, record,
		registry.StateLive, registry.StateDropped, registry.StatePurging)
	if !ok {
		return
	}
	if registry.PointerKey(value.ID) != record.Key {
		l.unreadable[record.Key] = fmt.Errorf("it holds the pointer %s", value.ID)
		return
	}
	switch {
	case record.State != registry.StateLive:
	case value.View:
		l.report.Views++
	default:
		l.report.Tables++
	}
	l.pointers[value.ID] = pointerAt{value, record.State}
}

func (l *look) entry(record registry.Record) {
	value, ok := readRecord[registry.Entry](l, record, registry.StateTable, registry.StateView)
	if !ok || !l.identifies(record, value.Pointer) {
		return
	}
	if named := registry.PointerKey(value.Pointer); l.hidden(named) {
		l.callers[named] = record.Key
		return
	}
	pointer, ok := l.pointers[value.Pointer]
	key := registry.EntryKey(pointer.value.NamespaceID, pointer.value.Name)
	_, state := kindOf(pointer.value)
	switch {
	case !ok:
		l.problem("entry %s names a table that does not exist", record.Key)
	case pointer.state != registry.StateLive:
		l.problem("entry %s names a table that is %s", record.Key, pointer.state)
	case key != record.Key:
		l.problem("entry %s names a table that is called %s", record.Key, key)
	case state != record.State:
		l.problem("entry %s of a %s names an object of another kind", record.Key, record.State)
	default:
		l.named[value.Pointer]++
	}
	name := strings.TrimPrefix(record.Key.ID, registry.EntryPrefix(pointer.value.NamespaceID))
	if ok && value.Shard != registry.Shard(name) {
		l.problem("entry %s is in the wrong shard", record.Key)
	}
}

func (l *look) uuid(record registry.Record) {
	value, ok := readRecord[registry.TableUUIDClaim](l, record, registry.StateNone)
	if !ok || !l.identifies(record, value.Pointer) || l.hidden(registry.PointerKey(value.Pointer)) {
		return
	}
	pointer, ok := l.pointers[value.Pointer]
	if !ok || registry.UUIDKey(pointer.value.TableUUID) != record.Key {
		l.problem("%s is claimed by a table that does not have it", record.Key)
		return
	}
	l.identified[value.Pointer] = true
}

func (l *look) label(record registry.Record) {
	value, ok := readRecord[registry.Labels](l, record, registry.StateNone)
	var id registry.ID
	if err := id.UnmarshalText([]byte(record.Key.ID)); err != nil {
		l.unreadable[record.Key] = err
		return
	}
	if !ok || l.hidden(registry.PointerKey(id)) {
		return
	}
	_, version, err := value.Text()
	if pointer, found := l.pointers[id]; !found || err != nil || pointer.value.Labels != version {
		l.problem("%s holds labels that no table or view names", record.Key)
		return
	}
	l.labelled[id] = true
}

// dropped checks that a dropped record is readable. The record is only a hint, so a wrong one is
// not a problem.
func (l *look) dropped(record registry.Record) {
	readRecord[registry.Dropped](l, record, registry.StateDropped, registry.StateEnded)
}

// labels reports tables and views whose labels are missing.
func (l *look) labels() {
	for id, pointer := range l.pointers {
		if !pointer.value.Labels.IsZero() && !l.labelled[id] && !l.hidden(registry.LabelKey(id)) {
			l.problem("%s names labels that do not exist", pointer)
		}
	}
}

// outcome checks that the outcome of an idempotency key is readable.
func (l *look) outcome(record registry.Record) {
	readRecord[registry.Idempotency](l, record, registry.StateNone)
}

// readTransactions reports unreadable transactions, and transactions that workers should already
// have ended. It does not check published files; the method files checks the files to which
// pointers still refer.
func (l *look) readTransactions(ctx context.Context) error {
	for entry, err := range l.transactions.All(ctx) {
		if err != nil {
			return ledger.StepError("check.readTransactions", err)
		}
		l.unfinished[entry.ID] = true
		l.transaction(entry)
	}
	return nil
}

func (l *look) transaction(entry txlog.Entry) {
	if entry.ID.IsZero() {
		l.problem("a transaction, which is %s, cannot be read: %s"+
			" (restore a backup, or remove the record from the database)", entry.State, entry.Unreadable)
		return
	}
	key := registry.TransactionKey(entry.ID)
	if entry.Unreadable != nil {
		l.problem("%s, which is %s, cannot be read: %s (see moorage doctor)", key, entry.State, entry.Unreadable)
		return
	}
	due := entry.Deadline
	if due.Before(l.config.Opened) {
		due = l.config.Opened
	}
	if l.config.Now().Sub(due) > recoveryGrace {
		l.problem("%s is %s, and its deadline was %s", key, entry.State, entry.Deadline.Format(time.RFC3339))
	}
}

func (l *look) task(record registry.Record) {
	l.tasks[record.Key] = true
	value, err := registry.DecodeTask(record)
	if err != nil {
		l.unreadable[record.Key] = err
		return
	}
	if record.State == registry.StateBlocked {
		l.problem("%s is blocked after %d attempts: %s (see moorage doctor)",
			record.Key, value.Attempts, value.LastError)
	}
	if value.Kind == registry.TaskRecovery {
		if !l.unfinished[value.ID] {
			l.ended = append(l.ended, value.ID)
		}
		return
	}
	if l.hidden(registry.PointerKey(value.Pointer)) {
		return
	}
	pointer, ok := l.pointers[value.Pointer]
	if !ok || pointer.state == registry.StateLive || pointer.value.Task != value.ID {
		l.problem("%s belongs to no dropped table", record.Key)
	}
}

// removeBlockers removes the blockers of transactions that ended after they were given up. Their
// coordinators were slow, and did not know of the blocker. The ids of such transactions are never
// used again.
func (l *look) removeBlockers(ctx context.Context) error {
	for _, id := range l.ended {
		entry, found, err := l.transactions.Get(ctx, id)
		if err == nil && !found { // if found, it began after readTransactions and was then given up
			entry.ID = id
			err = l.transactions.Finish(ctx, entry)
		}
		if err != nil {
			return ledger.StepError("check.removeBlockers", err)
		}
	}
	return nil
}

// purges reports dropped tables whose purge was requested, but that have neither a task nor a
// waiting purge. No worker would purge or forget them. It also reports waiting purges without a
// table.
func (l *look) purges() {
	awaited := make(map[registry.Key]bool)
	for _, pointer := range l.pointers {
		task := registry.TaskKey(pointer.value.Task)
		if !pointer.awaits(task) {
			continue
		}
		end := pointer.value.EndKey()
		awaited[end] = true
		if !l.tasks[end] && !l.waiting[end] && !l.hidden(end) {
			l.problem("%s is %s and awaits %s, which does not exist", pointer, pointer.state, end)
		}
	}
	for key := range l.waiting {
		pointer, _, err := registry.ParseWaiting(key)
		switch {
		case err != nil:
			l.unreadable[key] = err
		case !awaited[key] && !l.hidden(registry.PointerKey(pointer)):
			l.problem("%s belongs to no dropped table", key)
		}
	}
}

// parents reports namespaces whose parent is gone.
func (l *look) parents() {
	for id, at := range l.namespaces {
		if at.parent.IsZero() {
			continue // a warehouse
		}
		if _, ok := l.namespaces[at.parent]; !ok && !l.hiddenIn(at.warehouse) {
			l.problem("namespace %s (%s) has no parent", at.name, id)
		}
	}
}

// names reports live tables without the claim of their table-uuid, without a name, or with several
// names. It also reports tables whose record has a different namespace path than their namespace.
func (l *look) names() {
	for id, pointer := range l.pointers {
		if pointer.state != registry.StateLive {
			continue
		}
		value := pointer.value
		if l.named[id] != 1 && !l.hidden(registry.EntryKey(value.NamespaceID, value.Name)) {
			l.problem("%s has %d names", pointer, l.named[id])
		}
		if !l.identified[id] && !l.hidden(registry.UUIDKey(value.TableUUID)) {
			l.problem("%s does not hold its table-uuid", pointer)
		}
		path := l.path(value.NamespaceID)
		if !path.Equal(value.Namespace) && !l.hiddenPath(value.Warehouse, value.Namespace) {
			l.problem("%s is in namespace %q", pointer, path)
		}
	}
}

// path returns the names of a namespace and of the namespaces above it. It returns nil if the
// namespace does not exist, or if its parents do not lead to a warehouse.
func (l *look) path(id registry.ID) moorage.Namespace {
	var path moorage.Namespace
	for range len(l.namespaces) { // a longer path would be a cycle
		at, ok := l.namespaces[id]
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

// locations reports claims whose location belongs to another table, and live tables inside other
// tables. It also reports tombstones that a new claim could overlook.
func (l *look) locations(ctx context.Context) error {
	held, known := map[string]registry.ID{}, map[string]bool{}
	err := l.scan(ctx, registry.TableLocation, func(record registry.Record) {
		value, ok := readRecord[registry.LocationClaim](l, record,
			registry.StateOwner, registry.StateBelow, registry.StateDropping)
		known[record.Key.ID] = true
		if record.State != registry.StateOwner {
			return
		}
		held[record.Key.ID] = value.Pointer
		if !ok || !l.identifies(record, value.Pointer) || l.hidden(registry.PointerKey(value.Pointer)) {
			return
		}
		if pointer, ok := l.pointers[value.Pointer]; !ok || !slices.Contains(pointer.value.Claims, record.Key.ID) {
			l.problem("%s is claimed by a table that does not know of it", record.Key)
		}
	})
	if err != nil {
		return err
	}
	err = l.scan(ctx, registry.TableTombstone, func(record registry.Record) {
		readRecord[registry.Tombstone](l, record, registry.StateNone)
		if !known[record.Key.ID] {
			l.problem("%s has no record of its location, so a claim around it could miss it", record.Key)
		}
	})
	if err != nil {
		return err
	}
	for id, pointer := range l.pointers {
		if pointer.state != registry.StateLive {
			continue
		}
		for _, claim := range pointer.value.Claims {
			if held[claim] != id && !l.hidden(registry.LocationKey(claim)) {
				l.problem("%s does not hold its claim of %s", pointer, claim)
			}
			l.nesting(held, claim)
		}
	}
	return nil
}

// nesting reports a problem if a folder above the claimed location is the location of another
// table.
func (l *look) nesting(held map[string]registry.ID, claim string) {
	for at := strings.LastIndexByte(claim, '/'); at > 0; at = strings.LastIndexByte(claim[:at], '/') {
		if _, ok := held[claim[:at]]; ok {
			l.problem("the location %s lies within that of another table, %s", claim, claim[:at])
		}
	}
}
