package leases

import (
	"context"
	"slices"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// pageMax is the number of due records in one read.
	pageMax = 200
	// listedMax is the maximum number of due records that one search lists. triedMax is the maximum
	// number of tables that one search tries for the caller; each try costs some reads. The
	// caller's next search continues where this one stopped.
	listedMax = 20_000
	triedMax  = 2_000
	// awayCost is the number of tries that a table with an unreadable document counts for, because
	// a failed read can take long.
	awayCost = 200
	// placesMax is the maximum number of callers whose places are remembered.
	placesMax = 1_000
)

// place is where a search stopped: in a shard, just past the due record with the ID after. The zero
// place is the start of the index.
type place struct {
	shard int
	after string
}

// places remembers, in this process, where the last searches of callers stopped without work. So a
// caller that may write to only a few of the due tables finds them over time. The zero value is
// ready. It is safe for concurrent use.
type places struct {
	mu       sync.Mutex // guards the field below; no lock is taken under it
	byCaller map[string]place
}

func (p *places) of(caller string) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byCaller[caller]
}

// set records where a search stopped. at is the zero place if the search reached the end or found
// work.
func (p *places) set(caller string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == (place{}) {
		delete(p.byCaller, caller)
		return
	}
	if p.byCaller == nil || len(p.byCaller) >= placesMax {
		p.byCaller = make(map[string]place)
	}
	p.byCaller[caller] = at
}

// search is one search for work.
type search struct {
	*Work
	caller  moorage.Caller
	request WorkRequest
	now     time.Time // by the store's clock

	listed, tried int
	skipped       skippedTables
}

// skippedTables counts the tables that a search skipped because their records or documents could
// not be read.
type skippedTables struct {
	tables int
	last   string // its name, or its ID
	why    error  // the error for the last table
}

// add adds a table.
func (p *skippedTables) add(table string, why error) { *p = skippedTables{p.tables + 1, table, why} }

// isSpent reports whether the search has reached its cost limit.
func (s *search) isSpent() bool { return s.listed >= listedMax || s.tried >= triedMax }

// run searches the whole due index once. It begins where the caller's last search stopped, and
// wraps around.
func (s *search) run(ctx context.Context) (assigned Assignment, found bool, err error) {
	from := s.places.of(s.caller.Name)
	at := from
	for range len(registry.DueShards) {
		if assigned, found, err = s.shard(ctx, &at, ""); err != nil || found || s.isSpent() {
			break
		}
		at = place{shard: (at.shard + 1) % len(registry.DueShards)}
	}
	if err == nil && !found && !s.isSpent() && from.after != "" {
		assigned, found, err = s.shard(ctx, &at, from.after) // the part before the start
	}
	if err != nil {
		return assigned, false, err
	}
	if found || !s.isSpent() {
		at = place{}
	}
	s.places.set(s.caller.Name, at)
	return assigned, found, nil
}

// shard searches the due records of a shard. It begins at *at, advances *at as it goes, and stops
// at the ID until. If until is empty, it searches to the end of the shard.
func (s *search) shard(ctx context.Context, at *place, until string) (assigned Assignment, found bool, err error) {
	prefix := registry.DuePrefix(registry.DueShards[at.shard : at.shard+1])
	for !s.isSpent() {
		page, err := s.config.Ledger.ListKeys(ctx, registry.TableDue, prefix, at.after, pageMax)
		if err != nil {
			return assigned, false, err
		}
		s.listed += len(page)
		for _, record := range page {
			if until != "" && record.Key.ID > until {
				return assigned, false, nil
			}
			pointer, kind, due, err := registry.ParseDue(record.Key)
			if err == nil && due.After(s.now) {
				return assigned, false, nil // all further records are due even later
			}
			if at.after = record.Key.ID; err != nil || !slices.Contains(s.request.Kinds, kind) {
				continue
			}
			s.tried++
			assigned, found, err = s.assign(ctx, dueWork{pointer, kind, record.Key})
			if err != nil || found {
				return assigned, found, err
			}
			if s.isSpent() {
				return assigned, false, nil
			}
		}
		if len(page) < pageMax {
			return assigned, false, nil
		}
	}
	return assigned, false, nil
}

// dueWork is one kind of work on one table, with its due record.
type dueWork struct {
	pointer registry.ID
	kind    string
	due     registry.Key
}

// assign assigns one piece of work, unless something prevents it. The cheapest checks come first.
func (s *search) assign(ctx context.Context, on dueWork) (assigned Assignment, found bool, err error) {
	records, err := s.config.Ledger.Get(ctx, registry.JobKey(on.pointer, on.kind), registry.PauseKey(),
		registry.ScheduleKey(on.pointer), registry.PointerKey(on.pointer))
	if err != nil {
		return assigned, false, err
	}
	schedule, err := due.DecodeSchedule(on.pointer, records[2])
	if err != nil {
		s.skipped.add(on.pointer.String(), err)
		return assigned, false, nil
	}
	asked := schedule.Value.Job(on.kind)
	if records[0].Exists() || records[3].State != registry.StateLive || asked.Due.IsZero() ||
		registry.DueKey(on.pointer, on.kind, asked.Due) != on.due {
		return assigned, false, nil // the planner removes the due records of a dropped table
	}
	table, err := ledger.Decode[registry.Pointer](records[3])
	if err != nil {
		s.skipped.add(on.pointer.String(), err)
		return assigned, false, nil
	}
	if table.Frozen != "" { // it stays due until it is no longer a mirror
		return assigned, false, nil
	}
	if paused, err := jobs.IsPaused(records[1], table); err != nil || paused {
		return assigned, false, err
	}
	if found, _, err := s.config.Find(ctx, s.caller, table.Identifier()); err != nil || found != on.pointer {
		return assigned, false, unlessHidden(err)
	}
	version, err := s.load(ctx, table)
	if err != nil || version == nil {
		return assigned, false, err
	}
	rule, _, err := s.rule(ctx, version, table, on.kind, false)
	var unchanged []registry.Condition
	if err == nil && !rule.IsActive() {
		rule, unchanged, err = s.rule(ctx, version, table, on.kind, true)
	}
	if err != nil {
		return assigned, false, err
	}
	if !rule.IsActive() {
		if len(unchanged) == 0 {
			return assigned, false, nil
		}
		unchanged = append(unchanged, ledger.Unchanged(records[3]))
		return assigned, false, s.notRequired(ctx, schedule, asked, rule, unchanged)
	}
	assigned = Assignment{Kind: on.kind, Table: table.Identifier(), TableUUID: table.TableUUID, Rule: rule}
	found, err = s.handOut(ctx, schedule, asked, &assigned, records[1])
	return assigned, found, err
}

// load returns the present version of a table, or nil if it is unavailable now. If one storage is
// unavailable, the caller can still get work on tables in other storages.
func (s *search) load(ctx context.Context, table registry.Pointer) (*catalog.Version, error) {
	version, _, err := s.config.Tables.TableByID(ctx, table.ID)
	if err == nil || ctx.Err() != nil {
		return version, err
	}
	if unlessHidden(err) != nil {
		s.tried += awayCost
		s.skipped.add(table.Identifier().String(), err)
	}
	return nil, nil
}

// notRequired removes the due time of a table that no longer requires the work, because a policy
// was removed or the table itself forbids it. When that changes, the table becomes due again. If it
// has already changed, the conditions in unchanged fail, and the table stays due.
func (s *search) notRequired(ctx context.Context, schedule due.Schedule, asked registry.KindSchedule, rule policy.Rule,
	unchanged []registry.Condition) error {
	asked.Due, asked.Held = time.Time{}, rule.Held
	change, err := schedule.Move(schedule.Value.With(asked))
	if err == nil {
		change.Conditions = append(change.Conditions, unchanged...)
		_, err = s.apply(ctx, "leases.notRequired", change)
	}
	return err
}

// rule returns a table's rule for a kind; see WorkConfig.Rules.
func (s *search) rule(ctx context.Context, version *catalog.Version, table registry.Pointer, kind string,
	fresh bool) (policy.Rule, []registry.Condition, error) {
	rules, unchanged, err := s.config.Rules(ctx, table, version.Document.(*metadata.Document), fresh)
	return rules[assignable[kind]], unchanged, err
}

// unlessHidden returns nil if err means that the caller may not see the table. Otherwise it returns
// err.
func unlessHidden(err error) error {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchTable, moorage.KindNoSuchNamespace, moorage.KindNoSuchWarehouse, moorage.KindForbidden,
		moorage.KindNotAuthorized:
		return nil
	}
	return err
}
