package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"moorage/registry"
)

// sendAttemptsMax is the maximum number of times that one Apply is sent. It is sent again after a
// unique violation, a serialization failure or a deadlock, because these certainly changed nothing.
const sendAttemptsMax = 20

// Errors that send returns in addition to the errors of Store.Apply. The transaction was rolled
// back.
var (
	// errSendAgain means that the Apply may succeed if it is sent again.
	errSendAgain = errors.New("postgres: send again")
	// errUnnamed means that a condition failed, but the returned rows do not show which one,
	// because some rows were missing.
	errUnnamed = errors.New("postgres: a condition failed that the rows do not name")
)

// Apply implements registry.Store.
func (s *Store) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if err := batch.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	for sends := range sendAttemptsMax {
		if err := s.pause(ctx, sends); err != nil {
			return nil, err
		}
		var etags []registry.ETag
		if etags, err = s.newETags(batch); err != nil {
			return nil, err
		}
		sealed, sealErr := batch.Seal(etags)
		if sealErr != nil {
			return nil, sealErr
		}
		if err = s.sendSealed(ctx, sealed, etags, sends); err == nil {
			return etags[:len(batch.Writes):len(batch.Writes)], nil
		}
		if errors.Is(err, errUnnamed) {
			err = s.nameFailed(ctx, sealed.Conditions)
		}
		if !errors.Is(err, errSendAgain) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: gave up after %d tries: %w", registry.ErrUnavailable, sendAttemptsMax, err)
}

// nameFailed reads the records of conditions as of one moment. It returns the first condition that
// does not hold as a *registry.FailedError. It returns errSendAgain if all conditions hold at that
// moment.
func (s *Store) nameFailed(ctx context.Context, conditions []registry.Condition) error {
	keys := make([]registry.Key, len(conditions))
	for i, c := range conditions {
		keys[i] = c.Key
	}
	records, err := s.Get(ctx, keys...)
	if err != nil {
		return err
	}
	for i, c := range conditions {
		if !c.Met(records[i]) {
			return &registry.FailedError{Index: i, Condition: c}
		}
	}
	return errSendAgain
}

// newETags draws the ETags for a batch.
func (s *Store) newETags(batch registry.Batch) ([]registry.ETag, error) {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	return batch.NewETags(s.random)
}

// plan is a sealed batch in the form that statements use.
type plan struct {
	batch  registry.Batch // sealed: a change is its last write and has a condition
	etags  []registry.ETag
	touch  []touch // each key of the batch once, in the order of compareKeys
	change bool    // the last write is a change that needs a place

	written map[registry.Key]bool // every key of the batch, and whether it is written
}

// touch is a key that a batch writes or requires.
type touch struct {
	key    registry.Key
	writes bool
}

func newPlan(sealed registry.Batch, etags []registry.ETag) *plan {
	p := &plan{batch: sealed, etags: etags, change: sealed.Change != nil}
	p.written = make(map[registry.Key]bool, len(sealed.Writes)+len(sealed.Conditions))
	for _, c := range sealed.Conditions {
		p.written[c.Key] = false
	}
	for _, w := range sealed.Writes {
		p.written[w.Key] = true
	}
	for key, written := range p.written {
		p.touch = append(p.touch, touch{key, written})
	}
	slices.SortFunc(p.touch, func(a, b touch) int { return compareKeys(a.key, b.key) })
	return p
}

// compareKeys defines the order in which rows are locked.
func compareKeys(a, b registry.Key) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), strings.Compare(a.ID, b.ID))
}

// sendSealed sends a batch. sends is the number of earlier sends of the batch. After a rollback, a
// batch is not joined with other batches again. It returns the errors of Store.Apply, errSendAgain
// and errUnnamed.
func (s *Store) sendSealed(ctx context.Context, sealed registry.Batch, etags []registry.ETag, sends int) error {
	m, ok := newMove(sealed, etags)
	switch {
	case !ok:
		return s.send(ctx, newPlan(sealed, etags))
	case sends == 0 && m.joins():
		return s.moves.apply(ctx, m)
	}
	return s.sendMove(ctx, m)
}

// send executes the plan in one pipeline. It returns the errors of sendSealed.
func (s *Store) send(ctx context.Context, p *plan) error {
	found := make(map[registry.Key]registry.Record, len(p.touch))
	return s.write(ctx, s.pipeline(ctx, pipelined{
		statements: p.statements(func(record registry.Record) { found[record.Key] = record }),
		undone: func(answered *pgconn.PgError) error {
			if answered.Code == stateDivisionByZero {
				return p.failedCondition(found)
			}
			return fmt.Errorf("%w: %w", errSendAgain, answered)
		},
	}))
}

// statements returns the pipeline. It calls visit for every locked row.
func (p *plan) statements(visit func(registry.Record)) *pgx.Batch {
	batch := &pgx.Batch{}
	for run := range runs(p.touch) {
		mode := "SHARE"
		if run[0].writes {
			mode = "UPDATE"
		}
		table := run[0].key.Table
		batch.Queue(fmt.Sprintf("SELECT %d::smallint, key, etag, state, ''::bytea FROM %s "+
			"WHERE key = ANY($1::bytea[]) ORDER BY key FOR %s",
			table, tableName(table), mode), touchedIDs(run)).Query(func(rows pgx.Rows) error {
			return collect(rows, visit)
		})
	}
	p.guard(batch)
	writes := p.writes()
	for _, table := range registry.Tables() {
		if w := writes[table]; w != nil {
			insert(batch, table, w.inserts)
		}
	}
	if p.change {
		p.writeChange(batch)
	}
	for _, table := range registry.Tables() {
		if w := writes[table]; w != nil {
			update(batch, table, w.updates)
			remove(batch, table, w.deletes)
		}
	}
	return batch
}

// runs splits touched into consecutive runs with the same table and lock mode.
func runs(touched []touch) func(yield func([]touch) bool) {
	return func(yield func([]touch) bool) {
		for len(touched) > 0 {
			n := 1
			for n < len(touched) && touched[n].key.Table == touched[0].key.Table &&
				touched[n].writes == touched[0].writes {
				n++
			}
			if !yield(touched[:n]) {
				return
			}
			touched = touched[n:]
		}
	}
}

func touchedIDs(run []touch) [][]byte {
	ids := make([][]byte, len(run))
	for i, t := range run {
		ids[i] = []byte(t.key.ID)
	}
	return ids
}

// guard queues statements that fail with a division by zero unless all conditions hold. A row may
// have appeared since the rows were locked. Such a row cannot have the version that a condition
// requires, because no version is used twice, but it may have the required state. So the statements
// for states also lock their rows.
func (p *plan) guard(batch *pgx.Batch) {
	for _, table := range registry.Tables() {
		name := tableName(table)
		for kind, g := range p.guarded(table) {
			if len(g.keys) == 0 {
				continue
			}
			var query *pgx.QueuedQuery
			switch guardKind(kind) {
			case guardAbsent:
				query = batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM "+name+
					" WHERE key = ANY($1::bytea[])) THEN 0 ELSE 1 END)", g.keys)
			case guardETag:
				query = batch.Queue("SELECT 1 / (CASE WHEN (SELECT count(*) FROM unnest($1::bytea[], $2::uuid[]) "+
					"AS want (key, etag) JOIN "+name+
					" AS t ON t.key = want.key AND t.etag = want.etag "+
					"WHERE t.key = ANY($1::bytea[])) = $3::bigint THEN 1 ELSE 0 END)",
					g.keys, g.etags, len(g.keys))
			case guardState, guardWrittenState:
				mode := "SHARE"
				if guardKind(kind) == guardWrittenState {
					mode = "UPDATE"
				}
				query = batch.Queue("SELECT 1 / (CASE WHEN (SELECT count(*) FROM (SELECT t.key FROM "+
					"unnest($1::bytea[], $2::smallint[]) AS want (key, state) JOIN "+name+
					" AS t ON t.key = want.key AND t.state = want.state "+
					"WHERE t.key = ANY($1::bytea[]) FOR "+mode+" OF t) AS held) = $3::bigint THEN 1 ELSE 0 END)",
					g.keys, g.states, len(g.keys))
			}
			keepPrepared(batch, query)
		}
	}
}

// guardKind is the kind of condition that one statement of the guard checks.
type guardKind int

const (
	guardAbsent guardKind = iota
	guardETag
	guardState
	guardWrittenState // a state of a key that the batch also writes
	guardKinds
)

// guardGroup holds the conditions for one statement of the guard, column by column.
type guardGroup struct {
	keys   [][]byte
	etags  []pgtype.UUID
	states []int16
}

// guarded returns the distinct conditions on a table, grouped by their kind.
func (p *plan) guarded(table registry.Table) (groups [guardKinds]guardGroup) {
	seen := make(map[registry.Condition]bool)
	for _, c := range p.batch.Conditions {
		if c.Key.Table != table || seen[c] {
			continue
		}
		seen[c] = true
		kind := guardAbsent
		switch {
		case c.Kind == registry.CondETagIs:
			kind = guardETag
		case c.Kind == registry.CondStateIs && p.written[c.Key]:
			kind = guardWrittenState
		case c.Kind == registry.CondStateIs:
			kind = guardState
		}
		g := &groups[kind]
		g.keys = append(g.keys, []byte(c.Key.ID))
		g.etags = append(g.etags, uuid(c.ETag))
		g.states = append(g.states, int16(c.State))
	}
	return groups
}

// keepPrepared keeps the statements of batch prepared if query, its guard, fails. By default, the
// driver drops the prepared statements of a failed batch, because one of them could be the cause.
func keepPrepared(batch *pgx.Batch, query *pgx.QueuedQuery) {
	query.Fn = func(results pgx.BatchResults) error {
		_, err := results.Exec()
		if stateOf(err) == stateDivisionByZero {
			batch.QueuedQueries = nil
		}
		return err
	}
}

// writeChange queues the insert of the change record. The insert draws the sequence number of the
// change, and at that time the batch must hold all of its rows. So it comes after the locks, and
// after the inserts, because a new row is held only from its insert on. It comes before the updates
// and deletes.
func (p *plan) writeChange(batch *pgx.Batch) {
	last := len(p.batch.Writes) - 1
	w := p.batch.Writes[last]
	batch.Queue(intoChange+"VALUES ($1::bytea, $2::uuid, $3::smallint, $4::bytea, true, clock_timestamp())",
		[]byte(w.Key.ID), uuid(p.etags[last]), int16(w.State), w.Value)
}

// uuid is an ETag in a type that pgx can send even if it does not know the type of the parameter.
func uuid(etag registry.ETag) pgtype.UUID { return pgtype.UUID{Bytes: etag, Valid: true} }

// columns holds rows to write, column by column.
type columns struct {
	keys   [][]byte
	etags  []pgtype.UUID
	states []int16
	values [][]byte
	absent []bool // true if the row must not exist

	lives []pgtype.Interval // of outcomes; null if not given
}

func (c *columns) add(w registry.Write, etag registry.ETag, absent bool) {
	value := w.Value
	if value == nil {
		value = []byte{}
	}
	c.keys = append(c.keys, []byte(w.Key.ID))
	c.etags = append(c.etags, uuid(etag))
	c.states = append(c.states, int16(w.State))
	c.values = append(c.values, value)
	c.absent = append(c.absent, absent)
	c.lives = append(c.lives, pgtype.Interval{Microseconds: w.Life.Microseconds(), Valid: w.Life != 0})
}

// tableWrites holds the writes of one table. A put is an insert if the key must be absent, an
// update if the key must exist, and otherwise both. A delete of a key that may be missing is also
// both, because a missing row cannot be locked. Without the insert, a concurrent batch that creates
// the row could be ordered both before and after this batch.
type tableWrites struct{ inserts, updates, deletes columns }

// writes returns the batch's writes by table, each in the order of keys. It omits the change, which
// writeChange writes.
func (p *plan) writes() map[registry.Table]*tableWrites {
	asked := map[registry.Key]registry.ConditionKind{}
	for _, c := range p.batch.Conditions {
		asked[c.Key] = c.Kind
	}
	order := make([]int, len(p.batch.Writes))
	for i := range order {
		order[i] = i
	}
	if p.change {
		order = order[:len(order)-1]
	}
	slices.SortFunc(order, func(a, b int) int { return compareKeys(p.batch.Writes[a].Key, p.batch.Writes[b].Key) })
	byTable := map[registry.Table]*tableWrites{}
	for _, i := range order {
		w, etag := p.batch.Writes[i], p.etags[i]
		t := byTable[w.Key.Table]
		if t == nil {
			t = &tableWrites{}
			byTable[w.Key.Table] = t
		}
		kind := asked[w.Key]
		if w.Delete {
			if kind == 0 {
				t.inserts.add(registry.Put(w.Key, registry.StateNone, nil), etag, false)
			}
			t.deletes.add(w, etag, false)
			continue
		}
		if kind == 0 || kind == registry.CondAbsent {
			t.inserts.add(w, etag, kind == registry.CondAbsent)
		}
		if kind != registry.CondAbsent {
			t.updates.add(w, etag, false)
		}
	}
	return byTable
}

const newRows = "unnest($1::bytea[], $2::uuid[], $3::smallint[], $4::bytea[]"

// fromLife is the SQL for the time at which a new outcome expires.
const fromLife = "clock_timestamp() + new.life"

// insert queues the statement that inserts those rows of c that do not exist in table. It does not
// use ON CONFLICT, because an existing row that must be absent has to cause a unique violation. It
// locks the existing rows, because such a row may have appeared after the first step. Without a
// lock, the row could be deleted before the update.
func insert(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) == 0 {
		return
	}
	name, expires, expiresTo, life, lives := tableName(table), "", "", "", ""
	args := []any{c.keys, c.etags, c.states, c.values, c.absent}
	if table == registry.TableIdempotency {
		expires, expiresTo, life, lives = ", expires", ", "+fromLife, ", life", ", $6::interval[]"
		args = append(args, c.lives)
	}
	batch.Queue("INSERT INTO "+name+" (key, etag, state, value"+expires+") "+
		"SELECT new.key, new.etag, new.state, new.value"+expiresTo+" FROM "+newRows+
		", $5::boolean[]"+lives+") AS new (key, etag, state, value, absent"+life+") "+
		"WHERE new.absent OR NOT EXISTS (SELECT 1 FROM "+name+
		" AS t WHERE t.key = new.key FOR UPDATE) ORDER BY new.key", args...)
}

// update queues the statement that puts c into existing rows, except the rows just inserted. remove
// queues the statement that deletes c's keys.
func update(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) == 0 {
		return
	}
	place := ""
	switch table {
	case registry.TableChange: // an overwritten change record loses its place
		place = ", awaits = false, position = NULL, at = NULL"
	case registry.TableIdempotency: // rarely overwritten; the sweep then reads the expiry from the value
		place = ", expires = NULL"
	}
	batch.Queue("UPDATE "+tableName(table)+" AS t SET etag = new.etag, state = new.state, "+
		"value = new.value"+place+" FROM "+newRows+
		") AS new (key, etag, state, value) WHERE t.key = new.key AND t.key = ANY($1::bytea[]) AND t.etag <> new.etag",
		c.keys, c.etags, c.states, c.values)
}

func remove(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) > 0 {
		batch.Queue("DELETE FROM "+tableName(table)+" WHERE key = ANY($1::bytea[])", c.keys)
	}
}
