package due

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// walkPage is the number of pointers that one step of a walk reads. walkDocuments is the
	// maximum number of documents that it reads. The monitor reads changes between two steps.
	walkPage      = 500
	walkDocuments = 100
	// walkSlack is how late a page may begin without making the walk slower.
	walkSlack = time.Second
	// shadowPause is the time between two random checks. shadowTables is the number of tables in
	// one of them.
	shadowPause  = 24 * time.Hour
	shadowTables = 1000
	// timePause is the longest time between two writes of the store's time into the monitor's
	// record.
	timePause = 10 * time.Minute
)

// walk is a walk over the tables of a scope.
type walk struct {
	record registry.Record
	value  registry.Walk
}

// walking reports whether there is a walk to continue.
func (f *following) walking() bool { return len(f.walks) > 0 }

// skipLost handles changes that were deleted before the monitor read them. It skips them, and
// begins a walk over all tables.
func (f *following) skipLost(ctx context.Context) error {
	f.log.WarnContext(ctx, "maintenance: changes were deleted before they were read, so all tables are checked",
		"position", f.value.Position)
	return f.walkAll(ctx, "lost-log")
}

// walkAll skips all existing changes, and begins a walk over all tables.
func (f *following) walkAll(ctx context.Context, reason string) error {
	head, err := f.head(ctx)
	if err != nil {
		return err
	}
	f.forget()
	f.value.Position, f.value.Lost = head, true
	return f.begin(ctx, registry.ScopeServer, moorage.Identifier{}, reason)
}

// beginAt begins a walk over the scope of a policy. ident is the name of the scope.
func (f *following) beginAt(ctx context.Context, ident moorage.Identifier) error {
	if ident.Warehouse == "" {
		return f.begin(ctx, registry.ScopeServer, ident, "policy")
	}
	scope := "name/" + ident.String() // the walk uses the identifier
	if len(ident.Namespace) == 0 {
		scope = "name/" + ident.Warehouse
	} else if ident.Name == "" {
		scope = "name/" + ident.Warehouse + "." + ident.Namespace.String()
	}
	if len(registry.WalkPrefix+scope) > registry.KeyBytesMax {
		return f.begin(ctx, registry.ScopeServer, moorage.Identifier{}, "policy")
	}
	return f.begin(ctx, scope, ident, "policy")
}

// begin begins a walk, or restarts it. The same Apply writes the hash of the walk's policies into
// the position's record.
func (f *following) begin(ctx context.Context, scope string, ident moorage.Identifier, reason string) error {
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	value := registry.Walk{Ident: ident, Reason: reason, Since: now}
	writes, err := ledger.Encode(ledger.Put(registry.WalkKey(scope), registry.StateNone, value))
	if err != nil {
		return err
	}
	f.value.Policies = f.matcher.Hash()
	if _, err := f.apply(ctx, Change{Writes: writes}); err != nil {
		return err
	}
	f.log.InfoContext(ctx, "maintenance: a walk over tables begins", "scope", scope, "reason", reason)
	f.walksAt = time.Time{}
	return nil
}

// findWalks reads the walks to continue, at most once every walksPause.
func (f *following) findWalks(ctx context.Context) error {
	now := f.config.Now()
	if !f.walksAt.IsZero() && now.Sub(f.walksAt) < walksPause {
		return nil
	}
	if err := f.checkClock(ctx); err != nil {
		return err
	}
	records, err := f.ledger.List(ctx, registry.TableCursor, registry.WalkPrefix, "", pageMax)
	if err != nil {
		return err
	}
	f.walks, f.walksAt = nil, now
	for _, record := range records {
		value, err := ledger.Decode[registry.Walk](record)
		if err != nil {
			f.log.WarnContext(ctx, "maintenance: a walk cannot be read", "walk", record.Key.ID, "error", err)
			continue
		}
		f.walks = append(f.walks, &walk{record, value})
	}
	f.count(func(s *MonitorStats) { s.Walking = len(f.walks) })
	return nil
}

// checkClock begins a walk over all tables if the store's clock was set back since the last check
// of a monitor. Without the walk, records that were written while the clock was ahead might go
// unnoticed until the clock reaches their times again.
func (f *following) checkClock(ctx context.Context) error {
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	if registry.IsAhead(f.value.Time, now) {
		f.log.WarnContext(ctx, "maintenance: the clock has gone back, so all tables are checked",
			"from", f.value.Time, "to", now)
		f.forget()
		f.value.Time = now
		return f.begin(ctx, registry.ScopeServer, moorage.Identifier{}, "clock")
	}
	if now.Sub(f.value.Time) >= timePause {
		f.value.Time = now
		f.unsaved++
	}
	return nil
}

// walkOn walks over one page of tables. It returns false if there was nothing to do.
func (f *following) walkOn(ctx context.Context) (bool, error) {
	now := f.config.Now()
	if len(f.walks) == 0 || now.Before(f.walkAt) && !f.hurries {
		return false, nil
	}
	w := f.walks[0]
	met, after, err := f.tables(ctx, w.value.Ident, w.value.After, walkPage, walkDocuments)
	if err != nil {
		return false, err
	}
	if f.config.WalkRate > 0 {
		if now.Sub(f.walkAt) > walkSlack {
			f.walkAt = now
		}
		// A page costs at least as much as a document, even if no policy applies to its tables.
		cost := time.Duration(max(len(met), 1))
		f.walkAt = f.walkAt.Add(cost * time.Second / time.Duration(f.config.WalkRate))
	}
	for {
		err := f.walkPage(ctx, w, met, after)
		if !errors.Is(err, ledger.ErrRetry) {
			return true, err
		}
		if records, err := f.ledger.Get(ctx, w.record.Key); err != nil || records[0].ETag != w.record.ETag {
			f.walksAt = time.Time{} // the walk was restarted
			return true, err
		}
	}
}

// untilWalk returns how long it takes until a walk may read documents again, or pause if that is
// shorter.
func (f *following) untilWalk(pause time.Duration) time.Duration {
	if !f.walking() {
		return pause
	}
	return min(pause, max(f.walkAt.Sub(f.config.Now()), 0))
}

// walkPage makes the tables of a page due, and records the progress of the walk.
func (f *following) walkPage(ctx context.Context, w *walk, met []observed, after string) error {
	value := w.value
	value.After = after
	value.Looked += int64(len(met))
	beside := Change{Conditions: []registry.Condition{ledger.Unchanged(w.record)}}
	if after == "" {
		beside.Writes = []registry.Write{registry.Delete(w.record.Key)}
		f.value.Lost = f.value.Lost && len(f.walks) > 1
	} else {
		writes, err := ledger.Encode(ledger.Put(w.record.Key, registry.StateNone, value))
		if err != nil {
			return err
		}
		beside.Writes = writes
	}
	ids, sights := make([]registry.ID, len(met)), make(map[registry.ID]Observation, len(met))
	for i, each := range met {
		ids[i], sights[each.id] = each.id, each.sight
	}
	see := func(id registry.ID) (Observation, error) { return sights[id], nil }
	if err := f.makeDue(ctx, ids, see, func() {}, beside); err != nil {
		return err
	}
	f.count(func(s *MonitorStats) { s.Walked += int64(len(met)) })
	f.walksAt = time.Time{} // so that the next step reads the remaining walks again
	if after == "" {
		f.log.InfoContext(ctx, "maintenance: a walk over tables has ended", "scope", w.record.Key.ID,
			"tables", value.Looked)
	}
	return nil
}

// observed is a table with its observed state.
type observed struct {
	id    registry.ID
	sight Observation
}

// tables checks the tables of a scope that a policy applies to. It begins with the first pointer
// whose ID is greater than after. It reads at most limit pointers, and at most the given number of
// metadata documents. For the next call, pass next as after. At the end, next is empty.
func (f *following) tables(ctx context.Context, scope moorage.Identifier, after string, limit, documents int) (
	met []observed, next string, err error) {
	records, err := f.ledger.List(ctx, registry.TablePointer, "", after, limit)
	if err != nil {
		return nil, "", err
	}
	for _, record := range records {
		if len(met) == documents {
			return met, next, nil
		}
		next = record.Key.ID
		if record.State != registry.StateLive {
			continue
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			f.log.WarnContext(ctx, "maintenance: a pointer cannot be read", "pointer", record.Key.ID, "error", err)
			continue
		}
		if pointer.View || !isIn(pointer.Identifier(), scope) {
			continue
		}
		if chain := f.matcher.Chain(pointer.ID, pointer.Identifier()); policy.IsAsked(chain) {
			met = append(met, observed{pointer.ID, f.observeVersion(ctx, pointer, chain)})
		}
	}
	if registry.IsLastPage(records, limit) {
		next = ""
	}
	return met, next, nil
}

// isIn reports whether a table is in a scope.
func isIn(ident, scope moorage.Identifier) bool {
	if scope.Warehouse == "" {
		return true
	}
	depth := len(scope.Namespace)
	return ident.Warehouse == scope.Warehouse && depth <= len(ident.Namespace) &&
		slices.Equal(ident.Namespace[:depth], scope.Namespace) && (scope.Name == "" || ident.Name == scope.Name)
}

// observeVersion reads the present version of a table.
func (f *following) observeVersion(ctx context.Context, pointer registry.Pointer,
	chain []policy.Policy) Observation {
	sight := Observation{
		Warehouse: f.matcher.WarehouseID(pointer.Warehouse), Facts: policy.Facts{Files: -1}, Mode: ModeWalk,
	}
	version, err := f.read(ctx, pointer.Warehouse, pointer.ID)
	if err != nil {
		sight.Rules = policy.Effective(chain, nil)
		return sight // the table must be checked
	}
	document := version.Document.(*metadata.Document)
	summary := registry.Summary(document.Summary())
	sight.Facts = FactsOf(&summary)
	sight.Seq, sight.Exact = summary.Seq, true
	sight.Rules = policy.Effective(chain, document.Properties())
	return sight
}

// checkRandomTables checks random tables once a day, and makes tables due that the log should have
// made due.
func (f *following) checkRandomTables(ctx context.Context) error {
	now := f.config.Now()
	if f.walking() || now.Before(f.shadow) {
		return nil
	}
	f.shadow = now.Add(shadowPause)
	return f.checkTablesFromRandom(ctx, shadowTables)
}

// checkTablesFromRandom checks the given number of tables. It begins at a random place in the order
// of the tables' ids, which are random.
func (f *following) checkTablesFromRandom(ctx context.Context, tables int) error {
	from, err := f.ledger.NewID()
	if err != nil {
		return err
	}
	for after := from.String(); tables > 0; {
		met, next, err := f.tables(ctx, moorage.Identifier{}, after, min(tables, walkPage), walkDocuments)
		if err != nil {
			return err
		}
		if err := f.repair(ctx, met); err != nil || next == "" {
			return err
		}
		tables, after = tables-max(len(met), 1), next
	}
	return nil
}

// repair makes missed tables due. It counts a table as missed only if the table had no commit, and
// no check by a job, in the meantime.
func (f *following) repair(ctx context.Context, met []observed) error {
	var missed []observed
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	ids := make([]registry.ID, len(met))
	for i, each := range met {
		ids[i] = each.id
		delete(f.schedules, each.id)
	}
	if err := f.readSchedules(ctx, ids); err != nil {
		return err
	}
	for _, each := range met {
		schedule, isRead := f.schedules[each.id]
		if !isRead {
			continue
		}
		each.sight.Mode = ModeShadow
		if !schedule.Value.Job(string(policy.Orphans)).Last.IsZero() {
			delete(each.sight.Rules, policy.UnreferencedFileRemoval) // a commit makes the next pass due
		}
		if _, changed := Evaluate(schedule.Value, each.sight, now); changed {
			missed = append(missed, each)
		}
	}
	page, err := registry.Follow(ctx, f.config.Store, f.value.Position, 1)
	if err != nil || len(page) > 0 || len(missed) == 0 {
		return ledger.IgnoreRetry(ledger.StoreError("due.repair", err)) // the log must be read first
	}
	sights := make(map[registry.ID]Observation, len(missed))
	for i, each := range missed {
		ids[i], sights[each.id] = each.id, each.sight
	}
	see := func(id registry.ID) (Observation, error) { return sights[id], nil }
	if err := f.makeDue(ctx, ids[:len(missed)], see, func() {}); err != nil {
		return ledger.IgnoreRetry(err)
	}
	f.log.WarnContext(ctx, "maintenance: tables were missed and are due now", "tables", len(missed))
	f.count(func(s *MonitorStats) { s.Missed += int64(len(missed)) })
	return nil
}
