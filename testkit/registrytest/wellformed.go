package registrytest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"moorage/registry"
)

// WellFormed wraps a store so that a test fails when the store refuses a call as malformed
// (registry.ErrBadBatch). Such a refusal means that the calling code has a bug. The client would
// get an internal error, which a test could easily mistake for an expected failure.
//
// A test also fails if a batch with a change writes a warehouse, namespace or pointer whose Last is
// not that change. The same holds if the change would not allow the replaced value to be restored.
//
// The store has only the methods of registry.Store. It is safe for concurrent use.
func WellFormed(tb testing.TB, store registry.Store) registry.Store { return wellFormed{store, tb} }

type wellFormed struct {
	registry.Store
	tb testing.TB
}

func (s wellFormed) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change != nil && batch.Check() == nil {
		s.checkVersions(batch)
	}
	etags, err := s.Store.Apply(ctx, batch)
	if errors.Is(err, registry.ErrBadBatch) {
		s.tb.Errorf("the code planned a malformed batch: %v", err)
	}
	return etags, err
}

// checkVersions fails the test if batch breaks the promises of registry.Version and registry.Last.
func (s wellFormed) checkVersions(batch registry.Batch) {
	etags := make([]registry.ETag, len(batch.Writes)+1)
	for i := range etags {
		etags[i] = registry.ETag{1, byte(i)}
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		s.tb.Errorf("seal %s: %v", batch.Change.Operation, err)
		return
	}
	for _, version := range sealed.Change.Versions {
		at := slices.IndexFunc(batch.Writes, func(w registry.Write) bool { return w.Key == version.Key })
		write := batch.Writes[at]
		if !version.Old.IsZero() && version.Before == nil || !isInLog(version.Key.Table) {
			continue
		}
		if last, has := lastOf(write); has && last.Change != batch.Change.ID {
			s.tb.Errorf("%s writes %s with the last change %+v", batch.Change.Operation, write.Key, last)
		}
		if write.Delete {
			version.New = registry.ETag{}
		}
		was, ok, err := version.Earlier(write.Value)
		known := version.Before != nil && !version.Before.Cut
		if err != nil || ok != known || ok && !jsonEqual(was, write.Was.Value) {
			s.tb.Errorf("the change %s gives back %s as %s, %v, and it was %s",
				batch.Change.Operation, write.Key, was, err, write.Was.Value)
		}
	}
}

// isInLog reports whether changes record the replaced values of a table's records.
func isInLog(table registry.Table) bool {
	switch table {
	case registry.TableWarehouse, registry.TableNamespace, registry.TableEntry, registry.TablePointer:
		return true
	}
	return false
}

// lastOf returns the Last of the record that w writes. It returns false if w deletes a record, or
// if the record has no Last.
func lastOf(w registry.Write) (last registry.Last, has bool) {
	record := registry.Record{Key: w.Key, ETag: registry.ETag{1}, State: w.State, Value: w.Value}
	if w.Delete {
		return registry.Last{}, false
	}
	switch w.Key.Table {
	case registry.TableWarehouse:
		value, err := registry.DecodePart[registry.Warehouse](record)
		return value.LastIn(w.State), err == nil
	case registry.TableNamespace:
		value, err := registry.DecodePart[registry.Namespace](record)
		return value.LastIn(w.State), err == nil
	case registry.TablePointer:
		value, err := registry.DecodePart[registry.Pointer](record)
		return value.LastIn(w.State), err == nil
	}
	return registry.Last{}, false
}

// jsonEqual reports whether two texts have the same JSON value.
func jsonEqual(a, b []byte) bool {
	var values [2]any
	return json.Unmarshal(a, &values[0]) == nil && json.Unmarshal(b, &values[1]) == nil &&
		reflect.DeepEqual(values[0], values[1])
}
