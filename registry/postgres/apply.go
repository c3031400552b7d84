package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
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
	if p.change {
		p.writeChange(batch)
	}
	p.write(batch)
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
		etags  [][16]byte
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
		g.etags = append(g.etags, c.ETag)
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

// writeChange queues the insert of the change record, with the versions of all rows that the batch found.
func (p *plan) writeChange(batch *pgx.Batch) {
	last := len(p.batch.Writes) - 1
	w := p.batch.Writes[last]
	args := []any{[]byte(w.Key.ID), [16]byte(p.etags[last]), int16(w.State), w.Value, wroteETags(p.etags)}
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

func wroteETags(etags []registry.ETag) [][16]byte {
	wrote := make([][16]byte, 0, len(etags))
	for _, etag := range etags {
		if !etag.IsZero() {
			wrote = append(wrote, etag)
		}
	}
	return wrote
}

// rows are columns of rows to be written.
type rows struct {
	keys   [][]byte
	etags  [][16]byte
	states []int16
	values [][]byte
}

func (r *rows) add(w registry.Write, etag registry.ETag) {
	value := w.Value
	if value == nil {
		value = []byte{}
	}
	r.keys = append(r.keys, []byte(w.Key.ID))
	r.etags = append(r.etags, etag)
	r.states = append(r.states, int16(w.State))
	r.values = append(r.values, value)
}

// write queues the deletes, updates and inserts, in the order of tables and keys. A put whose key must be absent
// is an insert; every other one is an update, and an insert if there was no row.
func (p *plan) write(batch *pgx.Batch) {
	absent := map[registry.Key]bool{}
	for _, c := range p.batch.Conditions {
		if c.Kind == registry.CondAbsent {
			absent[c.Key] = true
		}
	}
	order := make([]int, len(p.batch.Writes))
	for i := range order {
		order[i] = i
	}
	if p.change {
		order = order[:len(order)-1] // writeChange wrote it
	}
	slices.SortFunc(order, func(a, b int) int { return compareKeys(p.batch.Writes[a].Key, p.batch.Writes[b].Key) })
	for len(order) > 0 {
		table := p.batch.Writes[order[0]].Key.Table
		var deletes, puts, inserts rows
		for len(order) > 0 && p.batch.Writes[order[0]].Key.Table == table {
			w, etag := p.batch.Writes[order[0]], p.etags[order[0]]
			order = order[1:]
			switch {
			case w.Delete:
				deletes.add(w, etag)
			case absent[w.Key]:
				inserts.add(w, etag)
			default:
				puts.add(w, etag)
			}
		}
		queueWrites(batch, table, deletes, puts, inserts)
	}
}

// queueWrites queues the writes of one table.
func queueWrites(batch *pgx.Batch, table registry.Table, deletes, puts, inserts rows) {
	const values = "unnest($1::bytea[], $2::uuid[], $3::smallint[], $4::bytea[]) AS new (key, etag, state, value)"
	name := tableName(table)
	if len(deletes.keys) > 0 {
		batch.Queue("DELETE FROM "+name+" WHERE key = ANY($1::bytea[])", deletes.keys)
	}
	if len(puts.keys) > 0 {
		// A change that is overwritten loses its place.
		place := ""
		if table == registry.TableChange {
			place = ", awaits = false, position = NULL, reads = NULL, wrote = NULL, at = NULL"
		}
		batch.Queue("UPDATE "+name+" AS t SET etag = new.etag, state = new.state, value = new.value"+place+" FROM "+values+" WHERE t.key = new.key",
			puts.keys, puts.etags, puts.states, puts.values)
		batch.Queue("INSERT INTO "+name+" (key, etag, state, value) SELECT new.key, new.etag, new.state, new.value FROM "+values+
			" WHERE NOT EXISTS (SELECT 1 FROM "+name+" AS t WHERE t.key = new.key) ORDER BY new.key",
			puts.keys, puts.etags, puts.states, puts.values)
	}
	if len(inserts.keys) > 0 {
		batch.Queue("INSERT INTO "+name+" (key, etag, state, value) SELECT new.key, new.etag, new.state, new.value FROM "+values+" ORDER BY new.key",
			inserts.keys, inserts.etags, inserts.states, inserts.values)
	}
}
