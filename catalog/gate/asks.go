package gate

import (
	"maps"
	"slices"

	"moorage/access"
)

// Ask is one privilege check of a verb, which is made before the verb does anything. The caller
// must have the privileges For on the subject Of. For is access.See if the caller only has to see
// the subject.
type Ask struct {
	Of   Subject
	For  access.Privileges
	When When
}

// Subject is the object of a privilege check.
type Subject uint8

// The subjects.
const (
	// OfObject is the object of the verb. If a register overwrites a table, it is the present
	// table.
	OfObject Subject = iota
	// OfContainer is the nearest existing container of the object. The object itself may not exist
	// yet.
	OfContainer
	// OfDestination is the destination namespace of a rename.
	OfDestination
	// OfDropped is a dropped table or view. The request restores or ends it, or takes over its
	// location.
	OfDropped
	// OfView is each view through which the caller reaches the object.
	OfView
	// OfServer is the server.
	OfServer
	// OfNeighbour is another table or view at a file location that the request names. If that table
	// or view is gone, OfNeighbour is the warehouse.
	OfNeighbour
)

// When is the condition of a privilege check. It is a set of bits: the request must meet all of
// them.
type When uint32

// Always is the empty condition, which every request meets.
const Always When = 0

// The conditions.
const (
	// IfLocated: the request chooses where files are. It names a location that the server would not
	// choose, sets one of PathProperties, or sets or removes the location of a namespace.
	IfLocated When = 1 << iota
	// IfPurging: the request also deletes the files.
	IfPurging
	// IfMoving: the destination of a rename or an undrop is in another namespace. A namespace that
	// was recreated counts as another one.
	IfMoving
	// IfTakingBack: the metadata file of a register belongs to a dropped table or view.
	IfTakingBack
	// IfTakingOver: a location passes from a dropped table or view to the object of the verb.
	IfTakingOver
	// IfCreating: a table of a transaction does not exist yet.
	IfCreating
	// ForProperties: the check decides only whether the answer includes properties.
	ForProperties
	// ForWriting: the check decides only whether the credentials or signatures permit writing.
	ForWriting
	// ForUpdates: the check requires the privileges for each update (OfUpdate), instead of For.
	ForUpdates
	// IfOther: the request names a principal other than the caller. A caller needs no privilege for
	// their own principal.
	IfOther
	// IfThrough: a trusted engine names views through which the caller reaches the object.
	IfThrough
	// ForGrants: the check requires each privilege that the request grants or revokes, instead of
	// For.
	ForGrants
	// IfReached: the request changes how the server or engines reach the files of a warehouse.
	IfReached
	// IfForeign: the request names a file location where another table or view lives or lived.
	IfForeign
	// IfForwarding: the location belongs to a dropped table with a waiting purge, which begins now.
	IfForwarding
	// Instead: a caller with For passes all unconditional checks of the same subject.
	Instead
	// IfReplacing: a dropped table or view takes the name of a live one, which is dropped.
	IfReplacing
)

// pathProperties are the properties of tables and views that determine where files are.
var pathProperties = []string{
	"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path",
}

// PathProperties returns the properties for which IsPathProperty is true.
func PathProperties() []string { return slices.Clone(pathProperties) }

// IsPathProperty reports whether a property of a table or view determines where files are. Setting
// or removing it requires access.Locate.
func IsPathProperty(name string) bool { return slices.Contains(pathProperties, name) }

// OfUpdate returns the privileges that one update of a table or view requires on it. names are the
// refs or properties in the update. An unknown action requires all privileges of known actions.
func OfUpdate(action string, names []string) access.Privileges {
	switch action {
	case "assign-uuid":
		return access.Describe // the update can only confirm the present value
	case "add-snapshot", "set-snapshot-ref", "set-statistics", "set-partition-statistics":
		return access.Write
	case "remove-snapshot-ref":
		if slices.Contains(names, "main") {
			return access.Maintain
		}
		return access.Write
	case "remove-snapshots", "remove-statistics", "remove-partition-statistics", "remove-partition-specs",
		"remove-schemas", "remove-encryption-key":
		return access.Maintain
	case "set-location":
		return access.Locate
	case "set-properties", "remove-properties":
		if slices.ContainsFunc(names, IsPathProperty) {
			return access.Alter | access.Locate
		}
		return access.Alter
	case "upgrade-format-version", "add-schema", "set-current-schema", "add-spec", "set-default-spec", "add-sort-order",
		"set-default-sort-order", "add-encryption-key", "add-view-version", "set-current-view-version":
		return access.Alter
	}
	return access.Alter | access.Write | access.Maintain | access.Locate
}

// Needs returns the privileges that a request for the verb requires on a subject. met has the
// conditions that the request meets. asks is false if the request needs no check of the subject.
func (r Row) Needs(of Subject, met When) (privileges access.Privileges, asks bool) {
	for _, ask := range r.Asks {
		if ask.Of == of && ask.When != Instead && ask.When&^met == 0 {
			privileges, asks = privileges|ask.For, true
		}
	}
	return privileges, asks
}

// Needs returns the privileges that a request for v requires on a subject. It returns access.See if
// the caller only has to see the subject. It returns access.Admin if v has no check of the subject.
func (v Verb) Needs(of Subject, met When) access.Privileges {
	privileges, asks := rows[v].Needs(of, met)
	if !asks {
		return access.Admin
	}
	return privileges
}

// NeedsFor returns the result of Needs plus named, for a request that meets ForUpdates or
// ForGrants. named has the result of OfUpdate for the request's updates, or the privileges that the
// request grants or revokes.
func (v Verb) NeedsFor(of Subject, met When, named access.Privileges) access.Privileges {
	return v.Needs(of, met) | named
}

// InsteadOf returns the privileges that a caller may have instead of the result of Needs. It
// returns access.See if there is no alternative.
func (r Row) InsteadOf(of Subject) (privileges access.Privileges) {
	for _, ask := range r.Asks {
		if ask.Of == of && ask.When == Instead {
			privileges |= ask.For
		}
	}
	return privileges
}

// asks returns the privilege checks of every verb of a caller. The verbs of the server's own jobs
// have no checks.
func asks() map[Verb][]Ask {
	one := func(of Subject, privileges access.Privileges) []Ask { return []Ask{{Of: of, For: privileges}} }
	through := func(privileges access.Privileges) []Ask {
		return []Ask{{OfView, access.Read, IfThrough}, {Of: OfObject, For: privileges}}
	}
	see, operate := one(OfObject, access.See), one(OfServer, access.Operate)
	over, near := Ask{OfDropped, access.Drop, IfTakingOver}, Ask{OfNeighbour, access.Locate, IfForeign}
	forward := Ask{OfDropped, access.Purge, IfForwarding}
	create := []Ask{
		{Of: OfContainer, For: access.Create}, {OfContainer, access.Locate, IfLocated}, over, forward, near,
	}
	register := []Ask{
		{Of: OfContainer, For: access.Create | access.Locate}, {OfDropped, access.Drop, IfTakingBack}, over, near,
	}
	rename := []Ask{
		{Of: OfObject, For: access.Drop}, {OfObject, access.Manage, IfMoving}, {Of: OfDestination, For: access.Create},
	}
	all := map[Verb][]Ask{
		CreateWarehouse:  one(OfServer, access.Admin),
		DropWarehouse:    one(OfServer, access.Admin),
		CreateNamespace:  {{Of: OfContainer, For: access.Create}, {OfContainer, access.Locate, IfLocated}},
		DropNamespace:    one(OfObject, access.Drop),
		UpdateProperties: {{Of: OfObject, For: access.Alter}, {OfObject, access.Locate, IfLocated}},
		CreateTable:      create,
		StageTable:       create,
		CommitCreate:     create,
		CreateView:       create,
		Register:         register,
		RegisterView:     register,
		RegisterOver:     append([]Ask{{Of: OfObject, For: access.Drop}}, register...),
		DropTable:        {{Of: OfObject, For: access.Drop}, {OfObject, access.Purge, IfPurging}},
		Unregister:       one(OfObject, access.Drop),
		DropView:         one(OfObject, access.Drop),
		Rename:           rename,
		RenameView:       rename,
		Commit:           {{Of: OfObject, For: access.Describe}, {Of: OfObject, When: ForUpdates}, over, near},
		Transaction: {
			{Of: OfObject, For: access.Describe}, {Of: OfObject, When: ForUpdates},
			{OfContainer, access.Create, IfCreating}, {OfContainer, access.Locate, IfLocated}, over, forward, near,
		},
		Replace: {{Of: OfObject, For: access.Alter}, {Of: OfObject, When: ForUpdates}, over, near},

		ListWarehouses:  one(OfServer, access.See),
		LoadWarehouse:   see,
		ListNamespaces:  see,
		LoadNamespace:   {{Of: OfObject}, {OfObject, access.Describe, ForProperties}},
		ListTables:      see,
		ListViews:       see,
		LoadTable:       through(access.Describe),
		TableExists:     one(OfObject, access.Describe),
		LoadView:        through(access.Describe),
		ViewExists:      one(OfObject, access.Describe),
		LoadCredentials: append(through(access.Read), Ask{OfObject, access.Write, ForWriting}),
		Sign:            append(through(access.Read), Ask{OfObject, access.Write, ForWriting}),
		LoadStaged:      one(OfContainer, access.Create),
		SignStaged:      one(OfContainer, access.Create),
		ReportMetrics:   one(OfServer, access.See), // the table of the report need not exist

		Describe:        one(OfServer, access.See),
		Diagnose:        operate,
		ListChanges:     one(OfServer, access.See), // package history decides about each event
		Backup:          operate,
		RotateSecrets:   one(OfServer, access.Admin),
		EndSessions:     one(OfServer, access.Admin),
		RetryUnfinished: operate,
		AbortUnfinished: operate,
		TakeLease:       one(OfObject, access.Write),
		RenewLeases:     one(OfServer, access.See),
		ReleaseLease:    one(OfServer, access.See),
		ListLeases:      operate,
		ClaimWork:       one(OfServer, access.See), // offers only tables that the caller may write to
		ReportWork:      one(OfServer, access.See), // accepts only the caller's own work
		LoadMetrics:     append(one(OfServer, access.Audit), Ask{OfServer, access.Operate, Instead}),
	}
	maps.Copy(all, administeringAsks())
	maps.Copy(all, warehousingAsks())
	maps.Copy(all, maintainingAsks())
	maps.Copy(all, browsingAsks())
	maps.Copy(all, versioningAsks())
	maps.Copy(all, undoingAsks())
	return all
}
