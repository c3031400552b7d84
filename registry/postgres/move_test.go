package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"moorage/registry"
)

// moveWorld holds the initial records of TestMoveConditions.
type moveWorld struct {
	*Store
	etags map[registry.Key]registry.ETag
}

func pointerKey(n int) registry.Key { return registry.PointerKey(faultID(n)) }

func outcomeKey(n int) registry.Key {
	return registry.Key{Table: registry.TableIdempotency, ID: fmt.Sprintf("key %d", n)}
}

func newMoveWorld(t *testing.T, options string) *moveWorld {
	t.Helper()
	w := &moveWorld{newStore(t, options), make(map[registry.Key]registry.ETag)}
	for _, key := range []registry.Key{pointerKey(1), pointerKey(2), registry.TransactionKey(faultID(1)), outcomeKey(1)} {
		w.put(t, key)
	}
	return w
}

func (w *moveWorld) put(t *testing.T, key registry.Key) {
	t.Helper()
	etags, err := w.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateLive, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	w.etags[key] = etags[0]
}

// is returns a condition that requires the present version of a key.
func (w *moveWorld) is(key registry.Key) registry.Condition {
	return registry.ETagIs(key, w.etags[key])
}

// stale returns a condition that requires a version that a key does not have.
func stale(key registry.Key) registry.Condition { return registry.ETagIs(key, registry.ETag{1}) }

// moving returns a batch that puts the keys of conditions.
func moving(change int, conditions ...registry.Condition) registry.Batch {
	batch := registry.Batch{Conditions: conditions, Change: &registry.Change{ID: faultID(change)}}
	for _, c := range conditions {
		write := registry.Put(c.Key, registry.StateLive, []byte("moved"))
		if c.Kind == registry.CondETagIs {
			write = over(write, c.ETag)
		}
		batch.Writes = append(batch.Writes, write)
	}
	return batch
}

// sendOnce sends a batch once with send. Like Apply, it then finds the failed condition if the rows
// do not show it.
func (s *Store) sendOnce(ctx context.Context, batch registry.Batch,
	send func(context.Context, registry.Batch, []registry.ETag) error) error {
	etags, err := s.newETags(batch)
	if err != nil {
		return err
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		return err
	}
	err = send(ctx, sealed, etags)
	if errors.Is(err, errUnnamed) || errors.Is(err, errSendAgain) {
		return s.nameFailed(ctx, sealed.Conditions)
	}
	return err
}

func (s *Store) asMove(ctx context.Context, sealed registry.Batch, etags []registry.ETag) error {
	m, ok := newMove(sealed, etags)
	if !ok {
		return errors.New("it is no move")
	}
	return s.sendMove(ctx, m)
}

func (s *Store) asPlan(ctx context.Context, sealed registry.Batch, etags []registry.ETag) error {
	return s.send(ctx, newPlan(sealed, etags))
}

// all returns every record that the cases of TestMoveConditions can touch.
func (w *moveWorld) all(t *testing.T) []registry.Record {
	t.Helper()
	var keys []registry.Key
	for n := range 5 {
		keys = append(keys, pointerKey(n), outcomeKey(n), registry.TransactionKey(faultID(n)), registry.ChangeKey(faultID(n)))
	}
	records, err := w.Get(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestMoveConditions makes each condition of a move fail, alone and with others. A move returns the
// same error as an Apply in the long form, and changes nothing.
func TestMoveConditions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"read committed": "", "serializable": "&default_transaction_isolation=serializable",
		"no prepared statements": "&default_query_exec_mode=exec",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMoveWorld(t, options)
			const there, fenced = 1, 4 // a change made by newMoveWorld, and a fenced change
			w.put(t, registry.ChangeKey(faultID(fenced)))
			transaction := registry.TransactionKey(faultID(there))
			for name, tt := range map[string]struct {
				batch  registry.Batch
				failed int
			}{
				"version":                        {moving(2, stale(pointerKey(1))), 0},
				"version of none":                {moving(2, stale(pointerKey(3))), 0},
				"version, then absent":           {moving(2, stale(pointerKey(1)), registry.Absent(outcomeKey(2))), 0},
				"absent, then version":           {moving(2, registry.Absent(outcomeKey(2)), stale(pointerKey(1))), 1},
				"absent":                         {moving(2, registry.Absent(outcomeKey(there)), w.is(pointerKey(1))), 0},
				"absent behind a version":        {moving(2, w.is(pointerKey(1)), registry.Absent(outcomeKey(there))), 1},
				"both, absent first":             {moving(2, registry.Absent(outcomeKey(there)), stale(pointerKey(1))), 0},
				"both, version first":            {moving(2, stale(pointerKey(1)), registry.Absent(outcomeKey(there))), 0},
				"second version":                 {moving(2, w.is(pointerKey(1)), stale(pointerKey(2))), 1},
				"first version":                  {moving(2, stale(pointerKey(2)), w.is(pointerKey(1))), 0},
				"version in another table":       {moving(2, w.is(pointerKey(1)), stale(transaction)), 1},
				"several, absent":                {moving(2, w.is(pointerKey(1)), w.is(transaction), registry.Absent(outcomeKey(there))), 2},
				"several, absent holds":          {moving(2, registry.Absent(outcomeKey(2)), w.is(pointerKey(1)), stale(transaction)), 2},
				"second absent":                  {moving(2, registry.Absent(outcomeKey(2)), registry.Absent(outcomeKey(there)), w.is(pointerKey(1))), 1},
				"absent only":                    {moving(2, registry.Absent(outcomeKey(2)), registry.Absent(outcomeKey(there))), 1},
				"change":                         {moving(fenced, w.is(pointerKey(1))), 1},
				"change behind absent":           {moving(fenced, registry.Absent(outcomeKey(2)), w.is(pointerKey(1))), 2},
				"change of several":              {moving(fenced, w.is(pointerKey(1)), w.is(pointerKey(2))), 2},
				"change of what must be absent":  {moving(fenced, registry.Absent(outcomeKey(2))), 1},
				"change behind a failed version": {moving(fenced, stale(pointerKey(1))), 0},
			} {
				before := w.all(t)
				for form, send := range map[string]func(context.Context, registry.Batch, []registry.ETag) error{"move": w.asMove, "plan": w.asPlan} {
					err := w.sendOnce(t.Context(), tt.batch, send)
					var failed *registry.FailedError
					if !errors.As(err, &failed) || failed.Index != tt.failed {
						t.Errorf("%s, as a %s: %v, want that condition %d failed", name, form, err, tt.failed)
					}
					if after := w.all(t); !reflect.DeepEqual(after, before) {
						t.Errorf("%s, as a %s: records changed from %v to %v", name, form, before, after)
					}
				}
			}
			for n, conditions := range [][]registry.Condition{
				{w.is(pointerKey(1))}, {registry.Absent(outcomeKey(2)), w.is(pointerKey(2))},
				{registry.Absent(outcomeKey(3)), registry.Absent(pointerKey(4))},
			} {
				if err := w.sendOnce(t.Context(), moving(100+n, conditions...), w.asMove); err != nil {
					t.Errorf("all conditions hold, move %d: %v", n, err)
				}
			}
			etags, err := w.Apply(t.Context(), moving(103, w.is(outcomeKey(1)), w.is(transaction), registry.Absent(outcomeKey(4))))
			if err != nil {
				t.Fatal(err)
			}
			records, err := w.Get(t.Context(), outcomeKey(1), transaction, outcomeKey(4))
			for i, record := range records {
				if err != nil || record.ETag != etags[i] || string(record.Value) != "moved" {
					t.Errorf("moved record %d: %v, %v, want etag %s", i, record, err, etags[i])
				}
			}
			wantChanges(t, w.Store, 0, 100, 101, 102, 103)
		})
	}
}

// TestNewMove: a batch that does not have the shape of a move is sent in the long form.
func TestNewMove(t *testing.T) {
	t.Parallel()
	s := &Store{random: rand.Reader}
	one := moving(1, stale(pointerKey(1)))
	with := func(change func(b *registry.Batch)) registry.Batch {
		batch := moving(1, stale(pointerKey(1)), registry.Absent(outcomeKey(1)))
		change(&batch)
		return batch
	}
	for name, tt := range map[string]struct {
		batch registry.Batch
		want  bool
	}{
		"one":              {one, true},
		"keyed":            {with(func(*registry.Batch) {}), true},
		"no change":        {with(func(b *registry.Batch) { b.Change = nil }), false},
		"a delete":         {with(func(b *registry.Batch) { b.Writes[0].Delete = true }), false},
		"a blind put":      {with(func(b *registry.Batch) { b.Conditions = b.Conditions[:1] }), false},
		"asks for another": {with(func(b *registry.Batch) { b.Conditions = append(b.Conditions, stale(pointerKey(2))) }), false},
		"asks for a state": {with(func(b *registry.Batch) { b.Conditions[0] = registry.StateIs(pointerKey(1), registry.StateLive) }), false},
		"asks twice":       {with(func(b *registry.Batch) { b.Conditions[1] = registry.ETagIs(pointerKey(1), registry.ETag{2}) }), false},
		"writes a change":  {moving(1, registry.Absent(registry.ChangeKey(faultID(2)))), false},
	} {
		etags, err := s.newETags(tt.batch)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := tt.batch.Seal(etags)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := newMove(sealed, etags); ok != tt.want {
			t.Errorf("%s: a move: %t, want %t", name, ok, tt.want)
		}
	}
}
