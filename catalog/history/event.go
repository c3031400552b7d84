package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/gate"
	"moorage/registry"
)

// Event describes the effect of a change on one object.
type Event struct {
	// ID identifies the event: a reader that gets the event twice can ignore the second one.
	ID string
	// Position is directly after the change of the event. All events of a change have the same
	// position.
	Position string
	Time     time.Time // by the clock of the node that made the change
	// Operation is one of Operations. Verb is the verb of the request, or of the job of the server.
	Operation, Verb string
	// Count is the number of events of the change in this answer.
	Count int
	Kind  string // registry.ItemTable or another constant of its group; empty if Operation is OpUnreadable
	// Ident is the name after the change, or before it for an object that ended. Previous is the
	// name before a rename.
	Ident    moorage.Identifier
	Previous *moorage.Identifier
	ObjectID registry.ID // zero for a principal or a role
	UUID     string      // of a table or view
	// Caller, Client, RequestID and TraceID belong to the request. If several commits shared a
	// version, Members has them for each commit.
	Caller, Client, RequestID, TraceID         string
	MetadataLocation, PreviousMetadataLocation string
	Purge                                      bool     // the drop requested a purge
	Actions                                    []string // as registry.Item.Actions
	Summary                                    *registry.Summary
	Delta                                      *Delta // nil if one of the versions is unknown
	Members                                    []registry.Member
	// Version is the name of the metadata file made by the change: now, or now~N. It is set only in
	// the history of an object.
	Version string
}

// Delta is the difference between the numbers of a table in two successive versions. A number that
// is missing in one of the versions is nil.
type Delta struct{ Rows, Files, Bytes, Snapshots *int64 }

// deltaOf returns the difference between two successive versions, given their summaries. A version
// without a current snapshot has no rows and no files.
func deltaOf(was, is *registry.Summary) *Delta {
	if was == nil || is == nil || is.Snapshots < 0 { // views have no snapshots
		return nil
	}
	differ := func(was, is int64) *int64 {
		if was < 0 || is < 0 {
			return nil
		}
		n := is - was
		return &n
	}
	total := func(of func(*registry.Summary) int64) *int64 {
		each := func(s *registry.Summary) int64 {
			if s.Snapshot < 0 {
				return 0
			}
			return of(s)
		}
		return differ(each(was), each(is))
	}
	return &Delta{
		Rows:      total(func(s *registry.Summary) int64 { return s.Rows }),
		Files:     total(func(s *registry.Summary) int64 { return s.Files }),
		Bytes:     total(func(s *registry.Summary) int64 { return s.Bytes }),
		Snapshots: differ(was.Snapshots, is.Snapshots),
	}
}

// The operations of events. The words without x- come from the event notifications planned for the
// Iceberg REST specification.
const (
	OpCreateTable     = "create-table"
	OpRegisterTable   = "register-table"
	OpUpdateTable     = "update-table"
	OpRenameTable     = "rename-table"
	OpDropTable       = "drop-table"
	OpCreateView      = "create-view"
	OpUpdateView      = "update-view"
	OpRenameView      = "rename-view"
	OpDropView        = "drop-view"
	OpCreateNamespace = "create-namespace"
	OpUpdateNamespace = "update-namespace-properties"
	OpDropNamespace   = "drop-namespace"
	OpCreateWarehouse = "x-create-warehouse"
	OpChangeWarehouse = "x-change-warehouse"
	OpDropWarehouse   = "x-drop-warehouse"
	OpUnregister      = "x-unregister"
	OpUndrop          = "x-undrop" // a dropped object was restored
	OpPurge           = "x-purge"  // the files are deleted, or a caller began the purge early
	OpEnd             = "x-end"    // a dropped object can no longer be restored
	OpForget          = "x-forget" // the same, because a caller requested it
	OpLabels          = "x-labels"
	OpProtect         = "x-protect" // protection was set or ended: see the actions
	OpMirror          = "x-mirror"  // no longer a mirror
	OpPolicy          = "x-policy"  // a maintenance policy was changed
	OpGrants          = "x-grants"
	OpPrincipal       = "x-principal"
	OpRole            = "x-role"
	OpUnreadable      = "x-unreadable" // the record of the change cannot be read
)

// Operations returns the operations that a filter can name.
func Operations() []string {
	return []string{
		OpCreateTable, OpRegisterTable, OpUpdateTable, OpRenameTable, OpDropTable, OpCreateView, OpUpdateView,
		OpRenameView, OpDropView, OpCreateNamespace, OpUpdateNamespace, OpDropNamespace, OpCreateWarehouse,
		OpChangeWarehouse, OpDropWarehouse, OpUnregister, OpUndrop, OpPurge, OpEnd, OpForget, OpLabels, OpProtect,
		OpMirror,
		OpPolicy, OpGrants, OpPrincipal, OpRole, OpUnreadable,
	}
}

// Kinds returns the kinds of objects that a filter can name.
func Kinds() []string {
	return []string{
		registry.ItemWarehouse, registry.ItemNamespace, registry.ItemTable, registry.ItemView, registry.ItemPrincipal,
		registry.ItemRole, registry.ItemGrants,
	}
}

// isInternal reports whether a change is only a step of a verb: a later change completes its
// effect, or it undoes an unfinished step.
func isInternal(verb string) bool {
	return strings.HasSuffix(verb, "-begin") || verb == "purge-forward" || verb == "put-back"
}

// operationOf returns the word for the effect of a change with a verb on an object.
func operationOf(verb string, item registry.Item) string {
	switch item.Kind {
	case registry.ItemGrants:
		return OpGrants
	case registry.ItemPrincipal:
		return OpPrincipal
	case registry.ItemRole:
		return OpRole
	}
	if word, only := onlyOperation(verb); only {
		return word
	}
	switch item.Kind {
	case registry.ItemWarehouse:
		switch gate.Verb(verb) {
		case gate.CreateWarehouse:
			return OpCreateWarehouse
		case gate.DropWarehouse:
			return OpDropWarehouse
		}
		return OpChangeWarehouse
	case registry.ItemNamespace:
		if gate.Verb(verb) == gate.Undrop { // it recreated the namespace
			return OpCreateNamespace
		}
		return verb // create-namespace, update-namespace-properties or drop-namespace
	}
	return operationOnPointer(verb, item)
}

// operationOnPointer is operationOf for a table or view. The locations in item show the effect of a
// transaction or a register.
func operationOnPointer(verb string, item registry.Item) string {
	ended := item.MetadataLocation == "" && item.PreviousMetadataLocation != ""
	word := func(action string) string { return action + "-" + item.Kind }
	switch v := gate.Verb(verb); {
	case v == gate.Rename, v == gate.RenameView:
		return word("rename")
	case ended: // dropped, or replaced by a register or an undrop
		return word("drop")
	case v == gate.Undrop:
		return OpUndrop
	case (v == gate.Register || v == gate.RegisterOver || v == gate.PutMirror) && item.Kind == registry.ItemTable:
		return OpRegisterTable
	case item.PreviousMetadataLocation == "" && item.MetadataLocation != "", v == gate.RegisterView:
		return word("create")
	case item.MetadataLocation != "":
		return word("update")
	}
	return "x-" + verb
}

// onlyOperation returns the word for a verb that has the same effect on every object that it
// changes.
func onlyOperation(verb string) (word string, only bool) {
	switch gate.Verb(verb) {
	case gate.PutMaintenancePolicy, gate.DeleteMaintenancePolicy, gate.PauseMaintenance, gate.ResumeMaintenance,
		gate.RescanMaintenance, gate.RunMaintenance, gate.AdoptFiles:
		return OpPolicy, true
	case gate.Unregister:
		return OpUnregister, true
	case gate.Purge, gate.PurgeDropped:
		return OpPurge, true
	case gate.EndWindow:
		return OpEnd, true
	case gate.Forget:
		return OpForget, true
	case gate.PutLabels:
		return OpLabels, true
	case gate.Protect:
		return OpProtect, true
	case gate.EndMirror:
		return OpMirror, true
	}
	return "", false
}

// eventsOf returns the events of a change. Internal steps have none.
func eventsOf(positioned registry.PositionedChange) []Event {
	change := positioned.Change
	if positioned.Unreadable != nil {
		return []Event{{ID: idOf(change.ID, 0), Operation: OpUnreadable}}
	}
	if isInternal(change.Operation) {
		return nil
	}
	events := make([]Event, len(change.Items))
	for i, item := range change.Items {
		events[i] = Event{
			ID: idOf(change.ID, i), Time: change.Time, Operation: operationOf(change.Operation, item),
			Verb: change.Operation, Kind: item.Kind, Ident: item.Ident, Previous: item.Previous, ObjectID: item.ID,
			UUID: item.UUID, Caller: change.Principal, Client: change.Client, RequestID: change.RequestID,
			TraceID:          change.TraceID,
			MetadataLocation: item.MetadataLocation, PreviousMetadataLocation: item.PreviousMetadataLocation,
			Purge: item.Purge, Actions: item.Actions, Summary: item.Summary, Members: change.Group,
		}
		if item.Summary != nil {
			events[i].Delta = deltaOf(change.SummaryBefore(item), item.Summary)
		}
	}
	return events
}

// placed holds the events of a change, and the position of the change.
type placed struct {
	position registry.Position
	events   []Event
}

// placedOf returns the events of changes, without the replaced values.
func placedOf(changes []registry.PositionedChange) []placed {
	all := make([]placed, len(changes))
	for i, each := range changes {
		all[i] = placed{each.Position, eventsOf(each)}
	}
	return all
}

func idOf(change registry.ID, item int) string { return fmt.Sprintf("%s.%d", change, item) }

// Filter selects events. An empty field selects all.
type Filter struct {
	// Warehouse, Namespace and Name are the scope: the server, a warehouse, a namespace with
	// everything in it, or an object. An event is in the scope if its name or its previous name is.
	Warehouse string
	Namespace moorage.Namespace
	Name      string
	// Kinds, Operations and Callers list the selected values. If several commits share a version,
	// the event is selected by each of their callers.
	Kinds, Operations, Callers []string
	// Since excludes events before a time.
	Since time.Time
}

// check returns KindBadRequest if f cannot select anything.
func (f Filter) check() error {
	for _, kind := range f.Kinds {
		if !slices.Contains(Kinds(), kind) {
			return moorage.Errorf(moorage.KindBadRequest, "Unknown kind %q: it is one of %s",
				moorage.Cut(kind, moorage.ShownBytesMax), strings.Join(Kinds(), ", "))
		}
	}
	for _, operation := range f.Operations {
		if !slices.Contains(Operations(), operation) {
			return moorage.Errorf(moorage.KindBadRequest, "Unknown operation %q: it is one of %s",
				moorage.Cut(operation, moorage.ShownBytesMax), strings.Join(Operations(), ", "))
		}
	}
	if len(f.Namespace) > 0 && f.Warehouse == "" || f.Name != "" && len(f.Namespace) == 0 {
		return moorage.Errorf(moorage.KindBadRequest,
			"A namespace needs the parameter warehouse, and a name needs the parameter namespace")
	}
	return nil
}

// selects reports whether f selects an event.
func (f Filter) selects(e Event) bool {
	switch {
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind),
		len(f.Operations) > 0 && !slices.Contains(f.Operations, e.Operation),
		len(f.Callers) > 0 && !f.isCalled(e),
		!f.Since.IsZero() && !e.Time.IsZero() && e.Time.Before(f.Since):
		return false
	}
	return f.has(e.Ident) || e.Previous != nil && f.has(*e.Previous)
}

func (f Filter) isCalled(e Event) bool {
	return slices.Contains(f.Callers, e.Caller) || slices.ContainsFunc(e.Members, func(m registry.Member) bool {
		return slices.Contains(f.Callers, m.Principal)
	})
}

// has reports whether an object is in the scope of f.
func (f Filter) has(ident moorage.Identifier) bool {
	depth := len(f.Namespace)
	switch {
	case f.Warehouse == "":
		return true
	case ident.Warehouse != f.Warehouse, len(ident.Namespace) < depth,
		!slices.Equal(ident.Namespace[:depth], f.Namespace):
		return false
	}
	return f.Name == "" || len(ident.Namespace) == depth && ident.Name == f.Name
}
