package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"moorage/registry"
)

// move is an Apply with a change in which each write is a put with one condition: the record has a
// certain version, or it is absent. A commit is a move. A move takes fewer statements than other
// Applies, because each condition is on a row that the move writes:
//
//	lock    the rows of a table, in the order of keys, if the move updates several of them
//	update  the rows that still have the required versions; the server returns their keys
//	insert  the rows that must be absent
//	change  the change record
//
// A commit of one table without an idempotency key consists of the update and the insert of the
// change.
//
// # Why two writers cannot both win
//
// An update holds its row until its transaction ends. A second update that requires the same
// version waits for that transaction. Then it checks the row again (READ COMMITTED), or the server
// rolls it back (SERIALIZABLE, REPEATABLE READ). If it checks the row again, it finds another
// version, because no ETag is drawn twice. So it does not change the row. Two inserts of one key
// conflict in the primary key. The second insert waits for the first, and fails unless the first
// was rolled back.
//
// A move happens as a whole or not at all. If it updates one row, the later inserts write only if
// that row has the move's own new ETag, which no other transaction can have written. So a move that
// lost its row writes nothing, and its transaction has nothing to roll back. If it updates several
// rows, the insert of the change divides by zero unless all of them have their new ETags. An insert
// that meets an existing row fails. Both roll back the transaction.
//
// The inserts come after the updates, as in the long form. So an Apply in the long form and a move
// that have several rows in common lock them in the same order, and cannot deadlock.
//
// # Why a lost answer can be settled
//
// The change record is inserted by the transaction that updates the rows, under an id that only
// this move has. So the record exists if and only if the move happened. If a fence has that id
// instead, the insert of the record fails, and the transaction is rolled back whenever it runs. A
// fence that is written while the transaction is in progress waits for the transaction's end,
// because both insert the same key. So in the end either the record or the fence exists, never
// both. A move that was refused inserts no record. The rows that its update returned show the
// refusal, whatever the server then reports about the commit.
//
// # Why changes keep their order
//
// The insert of the change is the last statement. It draws the sequence number only after the move
// has locked all of its rows, as every Apply does (package comment).
//
// # Moves that are joined
//
// Several moves can share one transaction (joiner) if each updates one pointer, and no two update
// the same pointer. The lock comes first, so that two such transactions cannot wait for each other.
// Each member depends only on its own row, and has its own change record, which decides its
// outcome. So the argument above holds for each member. An error rolls back the transaction for all
// members, although a single member may be the cause. Then each member is sent alone.
type move struct {
	batch   registry.Batch // sealed: the change is its last write, and the change's Absent its last condition
	etags   []registry.ETag
	swaps   []swap // in the order of keys
	inserts []int  // indexes of batch.Writes, in the order of keys
	bytes   int    // of all values
}

// swap is a put that requires a version of its record.
type swap struct {
	write int           // index of batch.Writes
	old   registry.ETag // the required version
}

// newMove converts a sealed batch to a move. ok is false if the batch is not a move.
func newMove(sealed registry.Batch, etags []registry.ETag) (m *move, ok bool) {
	change := len(sealed.Writes) - 1
	if sealed.Change == nil || len(sealed.Conditions) != len(sealed.Writes) {
		return nil, false
	}
	asked := make(map[registry.Key]registry.Condition, len(sealed.Conditions))
	for _, c := range sealed.Conditions {
		asked[c.Key] = c
	}
	m = &move{batch: sealed, etags: etags}
	for i, w := range sealed.Writes {
		m.bytes += len(w.Value)
		if i == change {
			break
		}
		switch c := asked[w.Key]; {
		case w.Delete || w.Key.Table == registry.TableChange:
			return nil, false
		case c.Kind == registry.CondETagIs:
			m.swaps = append(m.swaps, swap{i, c.ETag})
		case c.Kind == registry.CondAbsent:
			m.inserts = append(m.inserts, i)
		default: // the write has no condition, or the condition requires a state
			return nil, false
		}
	}
	key := func(i int) registry.Key { return sealed.Writes[i].Key }
	slices.SortFunc(m.swaps, func(a, b swap) int { return compareKeys(key(a.write), key(b.write)) })
	slices.SortFunc(m.inserts, func(a, b int) int { return compareKeys(key(a), key(b)) })
	return m, true
}

// follows reports whether m updates exactly one row. Then its inserts write only if that row was
// updated.
func (m *move) follows() bool { return len(m.swaps) == 1 }

// moved returns the write of the one row that the move updates. It may be called only if follows is
// true.
func (m *move) moved() registry.Write { return m.batch.Writes[m.swaps[0].write] }

// refusal returns the first condition of m that does not hold as a *registry.FailedError, or nil if
// updated has all rows that m must update. It returns errUnnamed if the failed condition is
// unknown.
func (m *move) refusal(updated map[registry.Key]bool) error {
	if !slices.ContainsFunc(m.swaps, func(u swap) bool { return !updated[m.batch.Writes[u.write].Key] }) {
		return nil
	}
	for i, c := range m.batch.Conditions {
		switch {
		case c.Kind == registry.CondETagIs && !updated[c.Key]:
			return &registry.FailedError{Index: i, Condition: c}
		case c.Kind == registry.CondAbsent && m.follows(): // not inserted, so not checked
			return errUnnamed
		}
	}
	return errUnnamed
}

// undone returns why the server rolled back m: the cause is the guard, or an existing row with the
// same key. The rows in updated had the required versions.
func (m *move) undone(answered *pgconn.PgError, updated map[registry.Key]bool) error {
	if answered.Code == stateDivisionByZero {
		return m.refusal(updated)
	}
	// If a row was not updated, either the inserts wrote nothing, or the guard, which comes last,
	// rolled them back.
	if m.refusal(updated) != nil {
		return errUnnamed
	}
	change := len(m.batch.Conditions) - 1
	for i, c := range m.batch.Conditions {
		// All other records are inserted before the change. If there is only one other record, it
		// is the cause.
		if c.Kind == registry.CondAbsent && tableName(c.Key.Table) == answered.TableName &&
			(i == change || len(m.inserts) == 1) {
			return &registry.FailedError{Index: i, Condition: c}
		}
	}
	return errUnnamed
}

// sendMove executes m in its own pipeline. It returns the errors of sendSealed.
func (s *Store) sendMove(ctx context.Context, m *move) error {
	sent := newSent([]*move{m})
	sent.undone = func(answered *pgconn.PgError) error { return m.undone(answered, sent.updated) }
	if err := s.write(ctx, s.pipeline(ctx, sent.pipelined)); err != nil {
		return err
	}
	return m.refusal(sent.updated)
}

// sent holds the moves of one pipeline, and the server's answers. It has one move of any kind, or
// several moves that can be joined.
type sent struct {
	pipelined
	moves   []*move
	updated map[registry.Key]bool
}

func newSent(moves []*move) *sent {
	s := &sent{moves: moves, updated: make(map[registry.Key]bool, len(moves))}
	s.statements = s.queue()
	s.refused = func() bool {
		return !slices.ContainsFunc(moves, func(m *move) bool { return m.refusal(s.updated) == nil })
	}
	return s
}

// queue returns the pipeline.
func (s *sent) queue() *pgx.Batch {
	batch := &pgx.Batch{}
	updates, inserts := make(map[registry.Table]*movedRows), make(map[registry.Table]*movedRows)
	for _, m := range s.moves {
		for _, u := range m.swaps {
			rows := rowsIn(updates, m.batch.Writes[u.write].Key.Table)
			rows.add(m, u.write)
			rows.olds = append(rows.olds, uuid(u.old))
		}
		for _, i := range m.inserts {
			rowsIn(inserts, m.batch.Writes[i].Key.Table).add(m, i)
		}
	}
	for _, table := range registry.Tables() {
		if rows := updates[table]; rows != nil {
			s.updateRows(batch, table, rows)
		}
	}
	for _, table := range registry.Tables() {
		if rows := inserts[table]; rows != nil {
			s.insertRows(batch, table, rows)
		}
	}
	s.insertChanges(batch)
	return batch
}

// movedRows holds rows of one table, column by column.
type movedRows struct {
	columns
	olds []pgtype.UUID // of updates: the version that the row must have
	// The row that the move updates, and its new ETag. Both are empty if the move updates no row,
	// or several.
	of   [][]byte
	made []pgtype.UUID
}

func rowsIn(byTable map[registry.Table]*movedRows, table registry.Table) *movedRows {
	rows := byTable[table]
	if rows == nil {
		rows = &movedRows{}
		byTable[table] = rows
	}
	return rows
}

// add adds a write of m, without the version that an update requires.
func (r *movedRows) add(m *move, write int) {
	r.columns.add(m.batch.Writes[write], m.etags[write], false)
	if m.follows() {
		r.of = append(r.of, []byte(m.moved().Key.ID))
		r.made = append(r.made, uuid(m.etags[m.swaps[0].write]))
	}
}

// column returns the values of a column, the first value, and their type in SQL.
func (r *movedRows) column(name string) (values, first any, kind string) {
	switch name {
	case "key":
		return r.keys, r.keys[0], "bytea"
	case "etag":
		return r.etags, r.etags[0], "uuid"
	case "state":
		return r.states, r.states[0], "smallint"
	case "value":
		return r.values, r.values[0], "bytea"
	case "life":
		return r.lives, r.lives[0], "interval"
	case "old":
		return r.olds, r.olds[0], "uuid"
	case "of":
		return r.of, r.of[0], "bytea"
	default:
		return r.made, r.made[0], "uuid"
	}
}

// source returns r as an item of FROM, named new, with the columns names. A single row is passed
// without arrays: the server would plan a statement with arrays at each execution, which would take
// longer than the execution.
func (r *movedRows) source(names ...string) (sql string, args []any) {
	parts := make([]string, len(names))
	for i, name := range names {
		values, first, kind := r.column(name)
		if len(r.keys) == 1 {
			args = append(args, first)
			parts[i] = fmt.Sprintf("$%d::%s AS %s", i+1, kind, name)
			continue
		}
		args = append(args, values)
		parts[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	if len(r.keys) == 1 {
		return "(SELECT " + strings.Join(parts, ", ") + ") AS new", args
	}
	return "unnest(" + strings.Join(parts, ", ") + ") AS new (" + strings.Join(names, ", ") + ")", args
}

// updateRows queues the statement that updates rows. If there are several rows, it first queues a
// statement that locks them in order.
func (s *sent) updateRows(batch *pgx.Batch, table registry.Table, rows *movedRows) {
	name, expires, several := tableName(table), "", ""
	if len(rows.keys) > 1 {
		batch.Queue("SELECT key FROM "+name+" WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE", rows.keys)
		several = " AND t.key = ANY($1::bytea[])"
	}
	if table == registry.TableIdempotency { // as in update
		expires = ", expires = NULL"
	}
	source, args := rows.source("key", "etag", "state", "value", "old")
	batch.Queue("UPDATE "+name+" AS t SET etag = new.etag, state = new.state, value = new.value"+expires+" FROM "+
		source+" WHERE t.key = new.key"+several+" AND t.etag = new.old RETURNING t.key", args...).
		Query(func(found pgx.Rows) error {
			var id []byte
			_, err := pgx.ForEachRow(found, []any{&id}, func() error {
				s.updated[registry.Key{Table: table, ID: string(id)}] = true
				return nil
			})
			return err
		})
}

// ifMoved is the SQL condition that the one updated row has the move's ETag. It is not written as a
// join, so that the server finds that row by its key, whatever the statistics of the table are.
func (s *sent) ifMoved() string {
	return " WHERE new.made = (SELECT t.etag FROM " + tableName(s.moves[0].moved().Key.Table) +
		" AS t WHERE t.key = new.of)"
}

// insertRows queues the statement that inserts rows. None of the rows may exist.
func (s *sent) insertRows(batch *pgx.Batch, table registry.Table, rows *movedRows) {
	names, where := []string{"key", "etag", "state", "value"}, ""
	into, selected := strings.Join(names, ", "), "new."+strings.Join(names, ", new.")
	if table == registry.TableIdempotency {
		names, into, selected = append(names, "life"), into+", expires", selected+", "+fromLife
	}
	if s.moves[0].follows() {
		names, where = append(names, "of", "made"), s.ifMoved()
	}
	source, args := rows.source(names...)
	batch.Queue("INSERT INTO "+tableName(table)+" ("+into+") SELECT "+selected+" FROM "+source+where+
		" ORDER BY new.key", args...)
}

const intoChange = "INSERT INTO moorage_change (key, etag, state, value, awaits, at) "

// insertChanges queues the statement that inserts the change records.
func (s *sent) insertChanges(batch *pgx.Batch) {
	if !s.moves[0].follows() {
		s.moves[0].insertChange(batch)
		return
	}
	var rows movedRows
	for _, m := range s.moves {
		rows.add(m, len(m.batch.Writes)-1)
	}
	source, args := rows.source("key", "etag", "state", "value", "of", "made")
	batch.Queue(intoChange+"SELECT new.key, new.etag, new.state, new.value, true, clock_timestamp() FROM "+source+
		s.ifMoved(), args...)
}

// insertChange queues the insert of the change of m, for which follows is false. It divides by zero
// unless all rows have been updated.
func (m *move) insertChange(batch *pgx.Batch) {
	last := len(m.batch.Writes) - 1
	w := m.batch.Writes[last]
	args := []any{[]byte(w.Key.ID), uuid(m.etags[last]), int16(w.State), w.Value}
	sql := intoChange + "SELECT $1::bytea, $2::uuid, $3::smallint, $4::bytea, true, clock_timestamp()"
	var counts []string
	byTable := make(map[registry.Table]*movedRows)
	for _, u := range m.swaps {
		rowsIn(byTable, m.batch.Writes[u.write].Key.Table).add(m, u.write)
	}
	for _, table := range registry.Tables() {
		if rows := byTable[table]; rows != nil {
			args = append(args, rows.keys, rows.etags)
			counts = append(counts, fmt.Sprintf("(SELECT count(*) FROM unnest($%[2]d::bytea[], $%[3]d::uuid[]) "+
				"AS made (key, etag) JOIN %[1]s AS t ON t.key = made.key AND t.etag = made.etag "+
				"WHERE t.key = ANY($%[2]d::bytea[]))", tableName(table), len(args)-1, len(args)))
		}
	}
	if len(counts) > 0 {
		args = append(args, len(m.swaps))
		sql += fmt.Sprintf(" WHERE 1 / (CASE WHEN %s = $%d::bigint THEN 1 ELSE 0 END) = 1",
			strings.Join(counts, " + "), len(args))
	}
	keepPrepared(batch, batch.Queue(sql, args...))
}
