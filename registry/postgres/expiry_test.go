package postgres

import (
	"slices"
	"testing"
	"time"

	"moorage/registry"
)

// TestExpired finds outcomes by the expiry given by their writes. Outcomes of older binaries have
// no expiry, and are found by their keys.
func TestExpired(t *testing.T) {
	t.Parallel()
	schema := migrated(t)
	store := openStore(t, server.DSN()+schema, Options{})
	begin, err := store.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := func(n byte) registry.Key { return registry.IdempotencyKey(registry.Hash{n}) }
	for n := byte(1); n <= 6; n++ {
		write := registry.Put(key(n), registry.StateNone, []byte("value"))
		if n <= 4 {
			write.Life = -time.Duration(n) * time.Hour
		}
		if _, err := store.Apply(t.Context(), registry.Batch{Conditions: []registry.Condition{registry.Absent(key(n))}, Writes: []registry.Write{write}}); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, schema, "INSERT INTO moorage_idempotency (key, etag, state, value) VALUES ($1, gen_random_uuid(), 0, $2)", []byte(key(7).ID), []byte("value"))
	wantFound := func(found []registry.Record, err error, value string, want ...byte) {
		t.Helper()
		var keys, wanted []registry.Key
		for _, record := range found {
			keys = append(keys, record.Key)
			if !record.Exists() || string(record.Value) != value {
				t.Errorf("%s has etag %s and value %q", record.Key, record.ETag, record.Value)
			}
		}
		for _, n := range want {
			wanted = append(wanted, key(n))
		}
		if err != nil || !slices.Equal(keys, wanted) {
			t.Errorf("found %v, want %v (%v)", keys, wanted, err)
		}
	}
	found, err := store.Expired(t.Context(), begin.Add(-90*time.Minute), 2)
	wantFound(found, err, "", 4, 3)
	found, err = store.Expired(t.Context(), begin.Add(-90*time.Minute), 10)
	wantFound(found, err, "", 4, 3, 2)
	found, err = store.Undated(t.Context(), "", 2)
	wantFound(found, err, "value", 5, 6)
	found, err = store.Undated(t.Context(), key(6).ID, 2)
	wantFound(found, err, "value", 7)
	// An outcome that is rewritten without an expiry is found by its key.
	if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(key(4), registry.StateNone, []byte("value"))}}); err != nil {
		t.Fatal(err)
	}
	found, err = store.Undated(t.Context(), "", 2)
	wantFound(found, err, "value", 4, 5)
	if _, err := store.Expired(t.Context(), begin, 0); err == nil {
		t.Error("a page of none was answered")
	}
}

// TestLifeOfAnOutcome: however wrong the clock of a node is, the life of an outcome begins with its
// write and is measured by the clock of the database.
func TestLifeOfAnOutcome(t *testing.T) {
	t.Parallel()
	store := openStore(t, server.DSN()+migrated(t), Options{})
	key := registry.IdempotencyKey(registry.Hash{1})
	value, err := registry.Encode(registry.Idempotency{Created: time.Now().Add(-40 * time.Minute), Life: 35 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	write := registry.Put(key, registry.StateNone, value)
	write.Life = 35 * time.Minute
	if _, err := store.Apply(t.Context(), registry.Batch{Conditions: []registry.Condition{registry.Absent(key)}, Writes: []registry.Write{write}}); err != nil {
		t.Fatal(err)
	}
	now, err := store.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		later time.Duration
		want  int
	}{{0, 0}, {34 * time.Minute, 0}, {36 * time.Minute, 1}} {
		if found, err := store.Expired(t.Context(), now.Add(row.later), 10); err != nil || len(found) != row.want {
			t.Errorf("%s after the write %d outcomes have expired, want %d (%v)", row.later, len(found), row.want, err)
		}
	}
}
