package postgres

import (
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"moorage/registry"
)

// Rows are locked in runs. All rows of a run are in the same table and have the same lock mode.
func TestRuns(t *testing.T) {
	t.Parallel()
	at := func(table registry.Table, id string, writes bool) touch {
		return touch{key: registry.Key{Table: table, ID: id}, writes: writes}
	}
	want := [][]touch{
		{at(registry.TableNamespace, "a", false), at(registry.TableNamespace, "b", false)},
		{at(registry.TablePointer, "a", false)},
		{at(registry.TablePointer, "b", true), at(registry.TablePointer, "c", true)},
		{at(registry.TablePointer, "d", false)},
	}
	got := slices.Collect(runs(slices.Concat(want...)))
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	for run := range runs(slices.Concat(want...)) {
		if !slices.Equal(run, want[0]) {
			t.Errorf("got %v behind the last that was asked for", run)
		}
		break
	}
}

// An Apply that cannot draw its ETags changes nothing, and returns an error.
func TestApplyWithoutChance(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	noChance := errors.New("no chance")
	store.random = iotest.ErrReader(noChance)
	if etags, err := store.Apply(t.Context(), put(1)); !errors.Is(err, noChance) {
		t.Errorf("got %v, %v, want the error of its source", etags, err)
	}
	wantChanges(t, store, 0)
}

// If the server rolls back every attempt, Apply gives up, or ends when it cannot draw a pause. It
// never reports success.
func TestApplyUndoneEachTime(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	for _, sql := range []string{
		"CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '40001'; END $$",
		"CREATE TRIGGER undo BEFORE INSERT ON moorage_pointer FOR EACH ROW EXECUTE FUNCTION undo()",
	} {
		if _, err := store.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Apply(t.Context(), put(1)); !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUnknown) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	store.random = io.LimitReader(rand.Reader, 2*2*16) // the ETags of two sends
	if _, err := store.Apply(t.Context(), put(1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the error of its source", err)
	}
	wantChanges(t, store, 0)
}

// If the returned rows do not show which condition failed, the error names the first condition that
// fails now. If none fails, the Apply is sent again.
func TestNameFailed(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	etags, err := store.Apply(t.Context(), put(1))
	if err != nil {
		t.Fatal(err)
	}
	holds := []registry.Condition{
		registry.ETagIs(registry.PointerKey(faultID(1)), etags[0]), registry.StateIs(registry.PointerKey(faultID(1)), registry.StateLive),
		registry.Absent(registry.PointerKey(faultID(2))),
	}
	if err := store.nameFailed(t.Context(), holds); !errors.Is(err, errSendAgain) {
		t.Errorf("all hold: got %v, want errSendAgain", err)
	}
	fails := registry.Absent(registry.PointerKey(faultID(1)))
	err = store.nameFailed(t.Context(), append(holds, fails, registry.StateIs(registry.PointerKey(faultID(3)), registry.StateLive)))
	if failed, ok := registry.FailedCondition(err); !ok || failed != fails {
		t.Errorf("got %v, want that %v failed", err, fails)
	}
}

// If the server of a connection no longer accepts writes, because it has become a standby, the
// connection is dropped. The next connection is made to a server that accepts writes.
func TestApplyAfterFailover(t *testing.T) {
	t.Parallel()
	store := newStore(t, "&pool_max_conns=1")
	conn, err := store.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "SET default_transaction_read_only = on")
	conn.Release()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Error(err)
	}
	wantChanges(t, store, 0, 1)
}
