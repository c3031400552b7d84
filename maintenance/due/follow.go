package due

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// following is the state of the node that follows the log. It belongs to one goroutine.
type following struct {
	*Monitor

	matcher *policy.Matcher
	record  registry.Record  // of the position; zero before the first Apply
	value   registry.Monitor // the value to write next
	unsaved int              // changes since the position in record
	saved   time.Time        // when the position was written, by this node's clock
	walks   []*walk
	walksAt time.Time // when the node last looked for requested walks
	walkAt  time.Time // before this time no walk reads documents, unless hurries is set
	hurries bool
	silent  map[string]time.Time // by warehouse: no reads until then, by this node's clock
	warned  time.Time            // time of the last warning about falling behind, by this node's clock
	// schedules and properties cache the state of tables; see schedulesMax.
	schedules  map[registry.ID]Schedule
	properties map[registry.ID]ownSettings
	unread     map[registry.ID]struct{} // tables with unreadable schedules that were already logged
}

// ownSettings holds a table's own maintenance settings, as of the version with this hash.
type ownSettings struct {
	rules      string
	properties map[string]string
}

// newFollowing reads the position of the monitor.
func newFollowing(ctx context.Context, m *Monitor) (*following, error) {
	f := &following{Monitor: m, silent: make(map[string]time.Time)}
	f.forget()
	now := m.config.Now()
	if f.saved = now; m.shadow.IsZero() {
		m.shadow = now.Add(time.Duration(m.jitter.Int64N(int64(shadowPause))))
	}
	var err error
	if f.matcher, err = m.config.Policies.Reload(ctx); err != nil {
		return nil, err
	}
	records, err := m.ledger.Get(ctx, registry.MonitorKey())
	if err != nil {
		return nil, err
	}
	if f.record = records[0]; f.record.Exists() {
		f.value, err = ledger.Decode[registry.Monitor](f.record)
		return f, err
	}
	f.value.Position, err = m.head(ctx)
	return f, err
}

// head returns a position at or after every change that existed when head was called.
func (m *Monitor) head(ctx context.Context) (registry.Position, error) {
	horizon, err := registry.ReadHorizon(ctx, m.config.Store)
	if err != nil {
		return 0, ledger.StoreError("due.head", err)
	}
	head, err := registry.Head(ctx, m.config.Store, horizon.Position)
	return head, ledger.StoreError("due.head", err)
}

// forget empties the caches of tables.
func (f *following) forget() {
	f.schedules, f.properties = make(map[registry.ID]Schedule), make(map[registry.ID]ownSettings)
	f.unread = make(map[registry.ID]struct{})
}

// step reads one page of changes, or walks over one page of tables. It reports whether more work is
// waiting.
func (f *following) step(ctx context.Context) (more bool, err error) {
	matcher := f.matcher
	page, err := registry.Follow(ctx, f.config.Store, f.value.Position, pageMax)
	if errors.Is(err, registry.ErrForgotten) {
		return true, f.skipLost(ctx)
	}
	if err != nil {
		return false, ledger.StoreError("due.step", err)
	}
	if len(page) > 0 {
		if err := f.fold(ctx, page); err != nil {
			return false, err
		}
	}
	f.count(func(s *MonitorStats) {
		s.Changes += int64(len(page))
		if s.Lag = 0; len(page) == pageMax {
			s.Lag = max(f.config.Now().Sub(page[pageMax-1].Change.Time), 0)
		}
	})
	if len(page) == pageMax {
		return true, f.fallBehind(ctx, page[pageMax-1].Change.Time)
	}
	if f.matcher == matcher && f.value.Policies != matcher.Hash() {
		// The log was read past the changes that made the policies in f.matcher, but none of them
		// began a walk.
		err := f.begin(ctx, registry.ScopeServer, moorage.Identifier{}, "policy")
		return true, err
	}
	if f.unsaved > 0 && f.config.Now().Sub(f.saved) >= savePause {
		if err := f.save(ctx); err != nil {
			return false, err
		}
	}
	if err := f.findWalks(ctx); err != nil {
		return false, err
	}
	if more, err = f.walkOn(ctx); more || err != nil {
		return more, err
	}
	return false, f.checkRandomTables(ctx)
}

// changedTable sums up the changes of one table in a page.
type changedTable struct {
	ident   moorage.Identifier
	summary *registry.Summary // nil if the table must be checked
}

// fold makes the tables in a page of changes due, and moves the position past the page.
func (f *following) fold(ctx context.Context, page []registry.PositionedChange) error {
	tables, order := make(map[registry.ID]changedTable), []registry.ID(nil)
	var begun []moorage.Identifier
	for _, each := range page {
		change := each.Change
		switch {
		case each.Unreadable != nil:
			f.log.WarnContext(ctx, "maintenance: a change cannot be read, so all tables are checked",
				"position", each.Position, "error", each.Unreadable)
			begun = append(begun, moorage.Identifier{})
		case isOfPolicies(change.Operation):
			begun = append(begun, change.Ident)
		}
		for _, item := range change.Items {
			if item.Kind != registry.ItemTable {
				continue
			}
			if _, met := tables[item.ID]; !met {
				order = append(order, item.ID)
			}
			if item.MetadataLocation == "" {
				tables[item.ID] = changedTable{} // the table is gone
				continue
			}
			tables[item.ID] = changedTable{item.Ident, item.Summary}
		}
	}
	if len(begun) > 0 {
		matcher, err := f.config.Policies.Reload(ctx)
		if err != nil {
			return err
		}
		f.matcher = matcher
		f.forget()
	}
	position := page[len(page)-1].Position
	if err := f.foldTables(ctx, tables, order, position); err != nil {
		return err
	}
	for _, ident := range begun {
		if err := f.beginAt(ctx, ident); err != nil {
			return err
		}
	}
	f.value.Position = position
	if f.unsaved += len(page); f.unsaved >= saveEvents {
		return f.save(ctx)
	}
	return nil
}

// isOfPolicies reports whether operation changes policies.
func isOfPolicies(operation string) bool {
	return operation == string(gate.PutMaintenancePolicy) || operation == string(gate.DeleteMaintenancePolicy)
}

// foldTables makes tables due. The last Apply moves the position.
func (f *following) foldTables(ctx context.Context, tables map[registry.ID]changedTable, order []registry.ID,
	position registry.Position) error {
	asked := order[:0]
	for _, id := range order {
		if t := tables[id]; t.ident.Name != "" && policy.IsAsked(f.matcher.Chain(id, t.ident)) {
			asked = append(asked, id)
		}
	}
	for len(asked) > 0 {
		part := asked[:min(len(asked), applyMax)]
		err := f.makeDue(ctx, part, func(id registry.ID) (Observation, error) {
			return f.observeChange(ctx, id, tables[id]), nil
		}, func() {
			if len(part) == len(asked) {
				f.value.Position = position
			}
		})
		if errors.Is(err, ledger.ErrRetry) {
			continue
		}
		if err != nil {
			return err
		}
		asked = asked[len(part):]
	}
	return nil
}

// makeDue writes the changed schedules of tables, together with the position. It calls before just
// ahead of the write; if there is nothing to write, it does not call before at all. ErrRetry means
// that a schedule has changed in the meantime.
func (f *following) makeDue(ctx context.Context, ids []registry.ID, see func(registry.ID) (Observation, error),
	before func(), beside ...Change) error {
	if err := f.readSchedules(ctx, ids); err != nil {
		return err
	}
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	var all Change
	var moved []registry.ID
	after := make(map[registry.ID]registry.Schedule)
	at := make(map[registry.ID]int) // the index of each schedule's write
	for _, id := range ids {
		schedule, isRead := f.schedules[id]
		if !isRead {
			continue
		}
		sight, err := see(id)
		if err != nil {
			return err
		}
		value, changed := Evaluate(schedule.Value, sight, now)
		if !changed {
			continue
		}
		change, err := schedule.Move(value)
		if err != nil {
			return err
		}
		at[id] = len(all.Writes)
		all.Add(change)
		moved, after[id] = append(moved, id), value
	}
	for _, each := range beside {
		all.Add(each)
	}
	if len(all.Writes) == 0 {
		return nil
	}
	before()
	if now.After(f.value.Time) {
		f.value.Time = now
	}
	etags, err := f.apply(ctx, all)
	if err != nil {
		return err
	}
	for _, id := range moved {
		i := at[id]
		write := all.Writes[i]
		f.schedules[id] = Schedule{Pointer: id, Value: after[id], Record: registry.Record{
			Key: write.Key, ETag: etags[i], Value: write.Value,
		}}
	}
	f.count(func(s *MonitorStats) { s.MadeDue += int64(len(moved)) })
	if slices.ContainsFunc(moved, func(id registry.ID) bool { return isDue(after[id], now) }) {
		f.config.MadeDue()
	}
	return nil
}

// isDue reports whether a table is due now.
func isDue(schedule registry.Schedule, now time.Time) bool {
	return slices.ContainsFunc(schedule.Jobs, func(job registry.KindSchedule) bool {
		return !job.Due.IsZero() && !job.Due.After(now)
	})
}

// readSchedules reads the schedules that are not cached. If a record cannot be read, its table does
// not become due; the other tables are unaffected.
func (f *following) readSchedules(ctx context.Context, ids []registry.ID) error {
	if len(f.schedules) > schedulesMax || len(f.properties) > schedulesMax {
		f.forget()
	}
	var missing []registry.ID
	var keys []registry.Key
	for _, id := range ids {
		if _, known := f.schedules[id]; !known {
			missing, keys = append(missing, id), append(keys, registry.ScheduleKey(id))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	records, err := f.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	for i, id := range missing {
		schedule, err := DecodeSchedule(id, records[i])
		if err == nil {
			f.schedules[id] = schedule
			continue
		}
		if _, told := f.unread[id]; !told {
			f.unread[id] = struct{}{}
			f.log.WarnContext(ctx, "maintenance: the schedule of a table cannot be read, so it is not made due",
				"table", id, "error", err)
		}
	}
	return nil
}

// apply applies change and moves the position in the same Apply. ErrRetry means that a schedule has
// changed in the meantime; apply makes the node read that schedule again. errOvertaken means that
// the position has changed.
func (f *following) apply(ctx context.Context, change Change) ([]registry.ETag, error) {
	writes, err := ledger.Encode(ledger.Put(registry.MonitorKey(), registry.StateNone, f.value))
	if err != nil {
		return nil, err
	}
	condition := registry.Absent(registry.MonitorKey())
	if f.record.Exists() {
		condition = ledger.Unchanged(f.record)
	}
	etags, err := f.ledger.Step(ctx, registry.Batch{
		Conditions: append([]registry.Condition{condition}, change.Conditions...),
		Writes:     append(change.Writes[:len(change.Writes):len(change.Writes)], writes...),
	})
	if failed, ok := registry.FailedCondition(err); ok {
		if failed.Key == registry.MonitorKey() {
			return nil, errOvertaken
		}
		var id registry.ID
		if id.UnmarshalText([]byte(failed.Key.ID)) == nil {
			delete(f.schedules, id)
		}
		return nil, ledger.ErrRetry
	}
	if err != nil {
		return nil, ledger.StepError("due.apply", err)
	}
	last := len(etags) - 1
	f.record = registry.Record{Key: registry.MonitorKey(), ETag: etags[last], Value: writes[0].Value}
	f.unsaved, f.saved = 0, f.config.Now()
	f.count(func(s *MonitorStats) { s.Applies++ })
	return etags, nil
}

// save writes the position if it has moved.
func (f *following) save(ctx context.Context) error {
	if f.unsaved == 0 && f.record.Exists() {
		return nil
	}
	_, err := f.apply(ctx, Change{})
	return err
}

// observeChange returns what a change reveals about its table.
func (f *following) observeChange(ctx context.Context, id registry.ID, t changedTable) Observation {
	sight := Observation{
		Warehouse: f.matcher.WarehouseID(t.ident.Warehouse), Facts: FactsOf(t.summary), Mode: ModeEvent,
	}
	if t.summary != nil {
		sight.Seq = t.summary.Seq
	}
	var properties map[string]string
	if sight.Facts.Known && sight.Facts.Rules != "" {
		known, ok := f.properties[id]
		if !ok || known.rules != sight.Facts.Rules {
			version, err := f.read(ctx, t.ident.Warehouse, id)
			if err != nil {
				sight.Facts = policy.Facts{Files: -1} // the table must be checked
			} else {
				document := version.Document.(*metadata.Document)
				known = ownSettings{document.Summary().Rules, document.Properties()}
				f.properties[id] = known
			}
		}
		properties = known.properties
	}
	sight.Rules = policy.Effective(f.matcher.Chain(id, t.ident), properties)
	return sight
}

// errSilent means that a warehouse's storage recently failed to answer.
var errSilent = errors.New("due: the storage of the warehouse gives no answer")

// read returns the present version of a table. If the warehouse's storage recently failed to
// answer, read returns errSilent. The table must then be checked later, but other tables do not
// wait for it.
func (f *following) read(ctx context.Context, warehouse string, id registry.ID) (version *catalog.Version, err error) {
	if f.config.Now().Before(f.silent[warehouse]) {
		return nil, errSilent
	}
	err = jobs.CallWithin(ctx, readPatience, func(ctx context.Context) (err error) {
		version, err = f.config.Tables.GlanceByID(ctx, id)
		return err
	})
	if errors.Is(err, jobs.ErrStalled) {
		f.silent[warehouse] = f.config.Now().Add(silentFor)
		f.log.WarnContext(ctx, "maintenance: a storage does not respond, so its tables become due unchecked",
			"warehouse", warehouse, "table", id, "for", silentFor)
	}
	return version, err
}
