package catalog

import (
	"context"
	"errors"

	"moorage"
	"moorage/locks"
	"moorage/registry"
	"moorage/txlog"
)

// Operation is one of the verbs that take locks, or are known to take none.
type Operation string

// The operations, as they are called in change records, logs and the lock table.
const (
	OpCreateWarehouse  Operation = "create-warehouse"
	OpDropWarehouse    Operation = "drop-warehouse"
	OpCreateNamespace  Operation = "create-namespace"
	OpDropNamespace    Operation = "drop-namespace"
	OpUpdateProperties Operation = "update-namespace-properties"
	OpCreateTable      Operation = "create-table"
	OpStageTable       Operation = "stage-table"
	OpCommitCreate     Operation = "commit-create"
	OpRegister         Operation = "register-table"
	OpRegisterOver     Operation = "register-table-overwrite"
	OpDropTable        Operation = "drop-table"
	OpCreateView       Operation = "create-view"
	OpRegisterView     Operation = "register-view"
	OpDropView         Operation = "drop-view"
	OpRenameView       Operation = "rename-view"
	OpReplace          Operation = "replace-view"
	OpReplaceContended Operation = "replace-view-contended"
	OpUnregister       Operation = "unregister-table"
	OpRename           Operation = "rename-table"
	OpCommit           Operation = "commit-table"
	OpCommitContended  Operation = "commit-table-contended"
	OpTransaction      Operation = txlog.Operation
	OpPurge            Operation = "purge"
	OpEndWindow        Operation = "end-undrop-window"
	OpRead             Operation = "read" // load, list, exists
)

// LockRule says which subtrees an operation locks for writing: all that it works on, at
// these levels, in one sorted call. No operation locks anything for reading.
type LockRule struct {
	Operation Operation
	Writes    []locks.Level
}

// LockTable returns the rule of every operation: the contract between the verbs of this package and
// the lock tree. An operation whose Writes are empty takes no lock at all and relies on its
// conditions alone.
func LockTable() []LockRule {
	return []LockRule{
		{OpCreateWarehouse, []locks.Level{locks.LevelWarehouse}},
		{OpDropWarehouse, []locks.Level{locks.LevelWarehouse}},
		{OpCreateNamespace, []locks.Level{locks.LevelNamespace}}, // the highest one that must be created
		{OpDropNamespace, []locks.Level{locks.LevelNamespace}},
		{OpUpdateProperties, nil},
		{OpCreateTable, []locks.Level{locks.LevelShard}},
		{OpStageTable, nil}, // stores nothing
		{OpCommitCreate, []locks.Level{locks.LevelShard}},
		{OpRegister, []locks.Level{locks.LevelShard}},
		{OpRegisterOver, []locks.Level{locks.LevelShard, locks.LevelPointer}},
		{OpDropTable, []locks.Level{locks.LevelShard, locks.LevelPointer}},
		{OpUnregister, []locks.Level{locks.LevelShard, locks.LevelPointer}},
		{OpRename, []locks.Level{locks.LevelShard, locks.LevelPointer}}, // the shards of both names
		{OpCommit, nil},
		{OpCommitContended, []locks.Level{locks.LevelPointer}}, // after racesMax lost races, for one try
		{OpCreateView, []locks.Level{locks.LevelShard}},
		{OpRegisterView, []locks.Level{locks.LevelShard}},
		{OpDropView, []locks.Level{locks.LevelShard, locks.LevelPointer}},
		{OpRenameView, []locks.Level{locks.LevelShard, locks.LevelPointer}}, // the shards of both names
		{OpReplace, nil},
		{OpReplaceContended, []locks.Level{locks.LevelPointer}}, // as for a table
		{OpTransaction, []locks.Level{locks.LevelPointer}},      // at once, non-blocking; with a key its attempt too
		{OpPurge, nil},
		{OpEndWindow, nil},
		{OpRead, nil},
	}
}

// lockRules is the lock table, made once. It is never written to.
var lockRules = LockTable()

// inProcess reports whether an operation takes its locks among the operations of this node only. A
// create rarely meets another node's create of the same shard, and hardly ever a drop of its
// namespace. A lock that all nodes share would cost every create more than such a meeting can
// (docs/reference/behaviour.md). The conditions of a create hold in any case.
func (o Operation) inProcess() bool {
	switch o {
	case OpCreateTable, OpCommitCreate, OpRegister, OpCreateView, OpRegisterView:
		return true
	}
	return false
}

// lockScope is what one call of an operation works on.
type lockScope struct {
	warehouse string
	namespace moorage.Namespace    // for locks.LevelNamespace
	names     []moorage.Identifier // for locks.LevelShard
	pointers  []registry.ID        // for locks.LevelPointer
}

// lock takes what the lock table says for an operation. It fails with KindUnavailable and
// nothing held if the locks cannot be had in time.
func (c *Catalog) lock(ctx context.Context, operation Operation, scope lockScope) (locks.Hold, error) {
	options := locks.Options{Timeout: c.lockTimes.Structural, InProcess: operation.inProcess()}
	if operation == OpDropNamespace {
		options.Timeout = c.lockTimes.NamespaceDrop
	}
	hold, err := c.locks.Acquire(ctx, lockRequest(operation, scope), options)
	switch {
	case err == nil:
		return hold, nil
	case errors.Is(err, locks.ErrTimeout), errors.Is(err, locks.ErrConflict):
		return nil, moorage.E("catalog.lock", string(operation), moorage.KindUnavailable,
			moorage.Errorf(moorage.KindUnavailable, "Other operations hold the locks of this one; nothing was changed"))
	}
	return nil, moorage.E("catalog.lock", string(operation), moorage.KindUnavailable, err)
}

// lockRequest turns an operation's rule into paths.
func lockRequest(operation Operation, scope lockScope) locks.Request {
	var request locks.Request
	for _, rule := range lockRules {
		if rule.Operation != operation {
			continue
		}
		for _, level := range rule.Writes {
			request.Writes = append(request.Writes, scope.paths(level)...)
		}
	}
	return request
}

func (s lockScope) paths(level locks.Level) []locks.Path {
	var paths []locks.Path
	switch level {
	case locks.LevelWarehouse:
		paths = append(paths, locks.Warehouse(s.warehouse))
	case locks.LevelNamespace:
		paths = append(paths, locks.NamespacePath(s.warehouse, s.namespace))
	case locks.LevelShard:
		for _, name := range s.names {
			paths = append(paths, locks.NamespacePath(name.Warehouse, name.Namespace).Shard(registry.Shard(name.Name)))
		}
	case locks.LevelPointer:
		paths = make([]locks.Path, 0, len(s.pointers))
		warehouse := locks.Warehouse(s.warehouse)
		for _, id := range s.pointers {
			paths = append(paths, warehouse.Pointer(id.String()))
		}
	}
	return paths
}
