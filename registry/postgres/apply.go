package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

// sendsMax bounds how often one Apply is sent: again after a unique violation, a serialization
// failure or a deadlock, which certainly changed nothing.
const sendsMax = 20

// errSendAgain says that the server undid the transaction for a reason that may not come again.
var errSendAgain = errors.New("postgres: send again")

// Apply implements registry.Store.
func (s *Store) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if err := batch.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	for range sendsMax {
		var etags []registry.ETag
		if etags, err = s.newETags(batch); err != nil {
			return nil, err
		}
		sealed, sealErr := batch.Seal(etags)
		if sealErr != nil {
			return nil, sealErr
		}
		if err = s.send(ctx, newPlan(sealed, etags)); err == nil {
			return etags[:len(batch.Writes):len(batch.Writes)], nil
		}
		if !errors.Is(err, errSendAgain) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: gave up after %d tries: %w", registry.ErrUnavailable, sendsMax, err)
}

// newETags draws the ETags for a batch.
func (s *Store) newETags(batch registry.Batch) ([]registry.ETag, error) {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	return batch.NewETags(s.random)
}

// plan is a sealed batch as statements see it.
type plan struct {
	batch  registry.Batch // sealed: a change is its last write and has a condition
	etags  []registry.ETag
	touch  []touch // every key of the batch once, in order
	change bool    // the last write is a change that is to have a place
}

// touch is a key that a batch writes or asks for.
type touch struct {
	key    registry.Key
	writes bool
}

func newPlan(sealed registry.Batch, etags []registry.ETag) *plan {
	p := &plan{batch: sealed, etags: etags, change: sealed.Change != nil}
	writes := make(map[registry.Key]bool, len(sealed.Writes)+len(sealed.Conditions))
	for _, c := range sealed.Conditions {
		writes[c.Key] = false
	}
	for _, w := range sealed.Writes {
		writes[w.Key] = true
	}
	for key, written := range writes {
		p.touch = append(p.touch, touch{key, written})
	}
	slices.SortFunc(p.touch, func(a, b touch) int { return compareKeys(a.key, b.key) })
	return p
}

// compareKeys is the order in which rows are locked.
func compareKeys(a, b registry.Key) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), strings.Compare(a.ID, b.ID))
}

// send carries the plan out in one pipeline. Errors are those of Store.Apply and errSendAgain.
func (s *Store) send(ctx context.Context, p *plan) error {
	return s.with(ctx, func(conn *pgxpool.Conn) error {
		raw := conn.Conn().PgConn()
		delete(raw.CustomData(), warned)
		found := make(map[registry.Key]registry.Record, len(p.touch))
		statements := p.statements(func(record registry.Record) { found[record.Key] = record })
		err := conn.SendBatch(ctx, statements).Close()
		if err == nil {
			if notice, ok := raw.CustomData()[warned]; ok {
				return fmt.Errorf("%w: the server warned while it committed: %v", registry.ErrUnknown, notice)
			}
			return nil
		}
		return p.failure(ctx, err, found)
	})
}

// statements returns the pipeline; visit gets every row that is locked.
func (p *plan) statements(visit func(registry.Record)) *pgx.Batch {
	batch := &pgx.Batch{}
	for run := range runs(p.touch) {
		mode := "SHARE"
		if run[0].writes {
			mode = "UPDATE"
		}
		table := run[0].key.Table
		batch.Queue(fmt.Sprintf("SELECT %d::smallint, key, etag, state, ''::bytea FROM %s WHERE key = ANY($1::bytea[]) ORDER BY key FOR %s",
			table, tableName(table), mode), touchedIDs(run)).Query(func(rows pgx.Rows) error { return collect(rows, visit) })
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

// runs cuts touched into runs of one table and one lock mode, keeping the order.
func runs(touched []touch) func(yield func([]touch) bool) {
	return func(yield func([]touch) bool) {
		for len(touched) > 0 {
			n := 1
			for n < len(touched) && touched[n].key.Table == touched[0].key.Table && touched[n].writes == touched[0].writes {
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

// guard queues statements that fail with a division by zero unless all conditions hold. The rows that
// they look at are locked, or absent.
func (p *plan) guard(batch *pgx.Batch) {
	type group struct {
		keys   [][]byte
		etags  []pgtype.UUID
		states []int16
	}
	groups := map[registry.ConditionKind]map[registry.Table]*group{}
	for _, c := range p.batch.Conditions {
		if groups[c.Kind] == nil {
			groups[c.Kind] = map[registry.Table]*group{}
		}
		g := groups[c.Kind][c.Key.Table]
		if g == nil {
			g = &group{}
			groups[c.Kind][c.Key.Table] = g
		}
		g.keys = append(g.keys, []byte(c.Key.ID))
		g.etags = append(g.etags, uuid(c.ETag))
		g.states = append(g.states, int16(c.State))
	}
	for _, table := range registry.Tables() {
		name := tableName(table)
		if g := groups[registry.CondAbsent][table]; g != nil {
			batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM "+name+" WHERE key = ANY($1::bytea[])) THEN 0 ELSE 1 END)", g.keys)
		}
		if g := groups[registry.CondETagIs][table]; g != nil {
			batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM unnest($1::bytea[], $2::uuid[]) AS want (key, etag) WHERE NOT EXISTS "+
				"(SELECT 1 FROM "+name+" AS t WHERE t.key = want.key AND t.etag = want.etag)) THEN 0 ELSE 1 END)", g.keys, g.etags)
		}
		if g := groups[registry.CondStateIs][table]; g != nil {
			batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM unnest($1::bytea[], $2::smallint[]) AS want (key, state) WHERE NOT EXISTS "+
				"(SELECT 1 FROM "+name+" AS t WHERE t.key = want.key AND t.state = want.state)) THEN 0 ELSE 1 END)", g.keys, g.states)
		}
	}
}

// writeChange queues the insert of the change record, with the versions of all rows that the batch found. It comes
// when every row of the batch is held, which its time must tell: behind the inserts, before the versions are overwritten.
func (p *plan) writeChange(batch *pgx.Batch) {
	last := len(p.batch.Writes) - 1
	w := p.batch.Writes[last]
	args := []any{[]byte(w.Key.ID), uuid(p.etags[last]), int16(w.State), w.Value, wroteETags(p.etags)}
	var parts []string
	byTable := map[registry.Table][][]byte{}
	for _, t := range p.touch {
		if t.key != w.Key {
			byTable[t.key.Table] = append(byTable[t.key.Table], []byte(t.key.ID))
		}
	}
	for _, table := range registry.Tables() {
		if ids, ok := byTable[table]; ok {
			args = append(args, ids)
			parts = append(parts, fmt.Sprintf("SELECT etag FROM %s WHERE key = ANY($%d::bytea[])", tableName(table), len(args)))
		}
	}
	reads := "'{}'::uuid[]"
	if len(parts) > 0 {
		reads = "ARRAY(" + strings.Join(parts, " UNION ALL ") + ")"
	}
	batch.Queue("INSERT INTO moorage_change (key, etag, state, value, wrote, awaits, reads, at) "+
		"VALUES ($1::bytea, $2::uuid, $3::smallint, $4::bytea, $5::uuid[], true, "+reads+", clock_timestamp())", args...)
}

// uuid is an ETag as pgx sends it, also to a server that was not asked for the parameter's type.
func uuid(etag registry.ETag) pgtype.UUID { return pgtype.UUID{Bytes: etag, Valid: true} }

func wroteETags(etags []registry.ETag) []pgtype.UUID {
	wrote := make([]pgtype.UUID, 0, len(etags))
	for _, etag := range etags {
		if !etag.IsZero() {
			wrote = append(wrote, uuid(etag))
		}
	}
	return wrote
}

// columns are rows to be written, column by column.
type columns struct {
	keys   [][]byte
	etags  []pgtype.UUID
	states []int16
	values [][]byte
	absent []bool // the row must not be there
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
}

// tableWrites are the writes of one table. A put of a key that must be absent is an insert, one of a
// key that must be there an update, any other one both.
type tableWrites struct{ inserts, updates, deletes columns }

// writes returns the batch's writes by table, each in the order of keys, without the change that writeChange writes.
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

// insert queues the statement that inserts c into table. ON CONFLICT is not used: a row that must be
// absent and is not is a unique violation.
func insert(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) == 0 {
		return
	}
	name := tableName(table)
	batch.Queue("INSERT INTO "+name+" (key, etag, state, value) SELECT new.key, new.etag, new.state, new.value FROM "+newRows+
		", $5::boolean[]) AS new (key, etag, state, value, absent) WHERE new.absent OR NOT EXISTS (SELECT 1 FROM "+name+
		" AS t WHERE t.key = new.key) ORDER BY new.key", c.keys, c.etags, c.states, c.values, c.absent)
}

// update queues the statement that puts c where there are rows, but for those just inserted, and remove the one that deletes c's keys.
func update(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) == 0 {
		return
	}
	place := ""
	if table == registry.TableChange { // one that is overwritten loses its place
		place = ", awaits = false, position = NULL, reads = NULL, wrote = NULL, at = NULL"
	}
	batch.Queue("UPDATE "+tableName(table)+" AS t SET etag = new.etag, state = new.state, value = new.value"+place+" FROM "+newRows+
		") AS new (key, etag, state, value) WHERE t.key = new.key AND t.etag <> new.etag", c.keys, c.etags, c.states, c.values)
}

func remove(batch *pgx.Batch, table registry.Table, c columns) {
	if len(c.keys) > 0 {
		batch.Queue("DELETE FROM "+tableName(table)+" WHERE key = ANY($1::bytea[])", c.keys)
	}
}
