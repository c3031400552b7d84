package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/maintenance/schedule"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// pageMax is how many due records are listed at a time.
	pageMax = 200
	// listedMax is how many due records one look lists, and triedMax how many tables it tries for
	// the caller. Each of these costs some reads. The next look of the caller goes on there.
	listedMax = 20_000
	triedMax  = 2_000
	// awayCost is how many of triedMax a table counts for whose document cannot be read: to find
	// that out may take long.
	awayCost = 200
	// placesMax is for how many callers the place is remembered.
	placesMax = 1_000

	shards = "0123456789abcdef"
)

// place is where a look stopped: behind the ID after of a due record of a shard. The zero place is
// before all of them.
type place struct {
	shard int
	after string
}

// places are where the last looks of callers stopped without work, as this process knows it. Who
// may write to few of the tables that are due gets to them by and by. The zero value is ready. It
// is safe for concurrent use.
type places struct {
	mu       sync.Mutex // guards the field below; leaf
	byCaller map[string]place
}

func (p *places) of(caller string) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byCaller[caller]
}

// set notes where a look stopped; the zero place if it came to the end, or has found work.
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

// search is one look for work.
type search struct {
	*Work
	caller  moorage.Caller
	request Request
	now     time.Time // by the store's clock

	listed, tried int
	passed        passed
}

// passed are tables that a look passed over because their records or documents could not be read.
type passed struct {
	tables int
	last   string // its name, or its ID
	why    error  // of the last
}

// add adds a table.
func (p *passed) add(table string, why error) { *p = passed{p.tables + 1, table, why} }

// isSpent reports whether the look has cost as much as one may.
func (s *search) isSpent() bool { return s.listed >= listedMax || s.tried >= triedMax }

// run looks through the due index once around, from where the last look of the caller stopped.
func (s *search) run(ctx context.Context) (claimed Claimed, found bool, err error) {
	from := s.places.of(s.caller.Name)
	at := from
	for range len(shards) {
		if claimed, found, err = s.shard(ctx, &at, ""); err != nil || found || s.isSpent() {
			break
		}
		at = place{shard: (at.shard + 1) % len(shards)}
	}
	if err == nil && !found && !s.isSpent() && from.after != "" {
		claimed, found, err = s.shard(ctx, &at, from.after) // what it began behind
	}
	if err != nil {
		return claimed, false, err
	}
	if found || !s.isSpent() {
		at = place{}
	}
	s.places.set(s.caller.Name, at)
	return claimed, found, nil
}

// shard looks through what is due of a shard, behind at, which it moves, up to the ID until; empty:
// to the end.
func (s *search) shard(ctx context.Context, at *place, until string) (claimed Claimed, found bool, err error) {
	prefix := registry.DuePrefix(shards[at.shard : at.shard+1])
	for !s.isSpent() {
		page, err := s.config.Ledger.ListKeys(ctx, registry.TableDue, prefix, at.after, pageMax)
		if err != nil {
			return claimed, false, err
		}
		s.listed += len(page)
		for _, record := range page {
			if until != "" && record.Key.ID > until {
				return claimed, false, nil
			}
			pointer, kind, due, err := registry.ParseDue(record.Key)
			if err == nil && due.After(s.now) {
				return claimed, false, nil // so are the others
			}
			if at.after = record.Key.ID; err != nil || !slices.Contains(s.request.Kinds, kind) {
				continue
			}
			s.tried++
			claimed, found, err = s.claim(ctx, kindOn{pointer, kind, record.Key})
			if err != nil || found {
				return claimed, found, err
			}
			if s.isSpent() {
				return claimed, false, nil
			}
		}
		if len(page) < pageMax {
			return claimed, false, nil
		}
	}
	return claimed, false, nil
}

// kindOn is a kind of work on a table, and the record by which it is due.
type kindOn struct {
	pointer registry.ID
	kind    string
	due     registry.Key
}

// claim hands out one piece of work, unless something is in the way. What costs least is looked at
// first.
func (s *search) claim(ctx context.Context, on kindOn) (claimed Claimed, found bool, err error) {
	records, err := s.config.Ledger.Get(ctx, registry.JobKey(on.pointer, on.kind), registry.PauseKey(),
		registry.CareKey(on.pointer), registry.PointerKey(on.pointer))
	if err != nil {
		return claimed, false, err
	}
	care, err := schedule.Decode(on.pointer, records[2])
	if err != nil {
		s.passed.add(on.pointer.String(), err)
		return claimed, false, nil
	}
	asked := care.Value.Job(on.kind)
	if records[0].Exists() || records[3].State != registry.StateLive || asked.Due.IsZero() ||
		registry.DueKey(on.pointer, on.kind, asked.Due) != on.due {
		return claimed, false, nil // the planner removes what is due of a table that is gone
	}
	table, err := ledger.Decode[registry.Pointer](records[3])
	if err != nil {
		s.passed.add(on.pointer.String(), err)
		return claimed, false, nil
	}
	if paused, err := jobs.IsPaused(records[1], table); err != nil || paused {
		return claimed, false, err
	}
	if found, _, err := s.config.Find(ctx, s.caller, table.Identifier()); err != nil || found != on.pointer {
		return claimed, false, passable(err)
	}
	version, err := s.load(ctx, table)
	if err != nil || version == nil {
		return claimed, false, err
	}
	rule, _, err := s.rule(ctx, version, table, on.kind, false)
	var unchanged []registry.Condition
	if err == nil && !rule.IsActive() {
		rule, unchanged, err = s.rule(ctx, version, table, on.kind, true)
	}
	if err != nil {
		return claimed, false, err
	}
	if !rule.IsActive() {
		if len(unchanged) == 0 {
			return claimed, false, nil
		}
		return claimed, false, s.notAsked(ctx, care, asked, rule, append(unchanged, ledger.Unchanged(records[3])))
	}
	claimed = Claimed{Kind: on.kind, Table: table.Identifier(), TableUUID: table.TableUUID, Rule: rule}
	found, err = s.handOut(ctx, s.caller, s.request, care, asked, &claimed, s.now)
	return claimed, found, err
}

// load returns the present version of a table; nil if it cannot be had now. A storage that is away
// keeps nobody from tables whose storage is there.
func (s *search) load(ctx context.Context, table registry.Pointer) (*catalog.Version, error) {
	version, _, err := s.config.Tables.TableByID(ctx, table.ID)
	if err == nil || ctx.Err() != nil {
		return version, err
	}
	if passable(err) != nil {
		s.tried += awayCost
		s.passed.add(table.Identifier().String(), err)
	}
	return nil, nil
}

// notAsked removes what is due of a table that is not to have it: a policy was taken back, or the
// table itself says no. It is due again when that changes; if it has by now, unchanged fails, and
// it stays due.
func (s *search) notAsked(ctx context.Context, care schedule.Care, asked registry.JobCare, rule policy.Rule,
	unchanged []registry.Condition) error {
	asked.Due, asked.Held = time.Time{}, rule.Held
	change, err := care.Move(care.Value.With(asked))
	if err == nil {
		change.Conditions = append(change.Conditions, unchanged...)
		_, err = s.apply(ctx, "work.notAsked", change)
	}
	return err
}

// rule returns what a table is to have of a kind; see Config.Rules.
func (s *search) rule(ctx context.Context, version *catalog.Version, table registry.Pointer, kind string,
	fresh bool) (policy.Rule, []registry.Condition, error) {
	rules, unchanged, err := s.config.Rules(ctx, table, version.Document.(*metadata.Document), fresh)
	return rules[kinds[kind]], unchanged, err
}

// passable returns nil for an error that says that a table is not for the caller.
func passable(err error) error {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchTable, moorage.KindNoSuchNamespace, moorage.KindNoSuchWarehouse, moorage.KindForbidden,
		moorage.KindNotAuthorized:
		return nil
	}
	return err
}
