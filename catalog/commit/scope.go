package commit

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/gate"
	"moorage/internal/trace"
	"moorage/locks"
	"moorage/registry"
)

// Scope holds the names that one use of a verb locks, at the levels in the verb's row of gate.Row.
type Scope struct {
	Warehouse string
	Namespace moorage.Namespace    // for locks.LevelNamespace
	Names     []moorage.Identifier // for locks.LevelShard
	Pointers  []registry.ID        // for locks.LevelPointer
	// Verb replaces the intent's verb in the choice of the row. A register sets it to the verb that
	// fits the present state of the name.
	Verb gate.Verb
}

// request returns the lock request for the subtrees of scope at levels.
func request(levels []locks.Level, scope Scope) locks.Request {
	var request locks.Request
	for _, level := range levels {
		request.Writes = append(request.Writes, scope.paths(level)...)
	}
	return request
}

func (s Scope) paths(level locks.Level) []locks.Path {
	var paths []locks.Path
	switch level {
	case locks.LevelWarehouse:
		paths = append(paths, locks.Warehouse(s.Warehouse))
	case locks.LevelNamespace:
		paths = append(paths, locks.NamespacePath(s.Warehouse, s.Namespace))
	case locks.LevelShard:
		for _, name := range s.Names {
			paths = append(paths, locks.NamespacePath(name.Warehouse, name.Namespace).Shard(registry.Shard(name.Name)))
		}
	case locks.LevelPointer:
		paths = make([]locks.Path, 0, len(s.Pointers))
		warehouse := locks.Warehouse(s.Warehouse)
		for _, id := range s.Pointers {
			paths = append(paths, warehouse.Pointer(id.String()))
		}
	}
	return paths
}

// lock takes the subtrees of scope at levels, the levels of a row. It fails with KindUnavailable
// and holds nothing if it does not get the locks in time.
func (p *Pipeline) lock(ctx context.Context, row gate.Row, levels []locks.Level, scope Scope) (locks.Hold, error) {
	options := locks.Options{Timeout: p.lockTimes.Structural, InProcess: row.InProcess}
	if row.Patient {
		options.Timeout = p.lockTimes.NamespaceDrop
	}
	_, span := trace.Start(ctx, "lock.acquire")
	hold, err := p.locks.Acquire(ctx, request(levels, scope), options)
	span.End(err)
	switch {
	case err == nil:
		return hold, nil
	case errors.Is(err, locks.ErrTimeout), errors.Is(err, locks.ErrConflict):
		return nil, moorage.E("commit.lock", string(row.Verb), moorage.KindUnavailable,
			moorage.Errorf(moorage.KindUnavailable,
				"Other operations hold the locks that this one needs; nothing was changed"))
	}
	return nil, moorage.E("commit.lock", string(row.Verb), moorage.KindUnavailable, err)
}
