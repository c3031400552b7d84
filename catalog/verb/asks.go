package verb

import (
	"maps"
	"slices"

	"moorage/access"
)

// Ask is one question that a verb asks before it does anything: whether the caller has For on what
// Of means. For is access.See if he only has to see it.
type Ask struct {
	Of   Subject
	For  access.Privileges
	When When
}

// Subject is an object that a verb asks about.
type Subject uint8

// The subjects.
const (
	// OfObject is what the verb is about; of a table to be overwritten, the present one.
	OfObject Subject = iota
	// OfContainer is what the object is in, or is to be made in: the nearest one that exists.
	OfContainer
	// OfDestination is the namespace that a rename leads to.
	OfDestination
	// OfDropped is the dropped table or view that a register takes back, or whose location is taken
	// over.
	OfDropped
	// OfView is each view that the caller comes through.
	OfView
	// OfServer is the server.
	OfServer
	// OfNeighbour is another table or view where the request names a place of files; if that is
	// gone, its warehouse.
	OfNeighbour
)

// When is what a question depends on: one condition, or several at once.
type When uint16

// Always is the condition that every request meets.
const Always When = 0

// The conditions.
const (
	// IfLocated: the request chooses where files are. It names a location that the server would
	// not have chosen, sets one of PathProperties, or sets or removes the location of a namespace.
	IfLocated When = 1 << iota
	// IfPurging: the request asks for the files to be deleted too.
	IfPurging
	// IfMoving: the destination is in another namespace.
	IfMoving
	// IfTakingBack: the metadata file is that of a dropped table or view.
	IfTakingBack
	// IfTakingOver: a location passes from a dropped table or view to what the verb is about.
	IfTakingOver
	// IfCreating: a table of a transaction does not exist yet.
	IfCreating
	// ForProperties: without it, the answer has no properties.
	ForProperties
	// ForWriting: without it, what is given reaches files for reading only.
	ForWriting
	// ForUpdates: what each update asks for (OfUpdate), instead of For.
	ForUpdates
	// IfOther: it is about another than the caller, who needs nothing for what is his own.
	IfOther
	// IfThrough: a trusted engine names views that the caller comes through.
	IfThrough
	// ForGrants: each privilege that is granted or revoked, instead of For.
	ForGrants
	// IfReached: the request changes how the files of a warehouse are reached.
	IfReached
	// IfForeign: the request names a place of files where another table or view lives or lived.
	IfForeign
	// IfForwarding: the location is that of a dropped table whose purge waits, and begins for it.
	IfForwarding
	// Instead: what does in the place of all that is asked Always about the same subject.
	Instead
)

// pathProperties are the properties of tables and views that say where files are.
var pathProperties = []string{
	"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path",
}

// PathProperties returns the properties that IsPathProperty is about.
func PathProperties() []string { return slices.Clone(pathProperties) }

// IsPathProperty reports whether a property of a table or view says where files are. To set or
// remove it asks for access.Locate.
func IsPathProperty(name string) bool { return slices.Contains(pathProperties, name) }

// OfUpdate returns the privileges that one update of a table or view asks for on it. names are the
// refs or properties that it names. An action that is not known asks for all that there is.
func OfUpdate(action string, names []string) access.Privileges {
	switch action {
	case "assign-uuid":
		return access.Describe // it can only confirm the present one
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

// Needs returns the privileges that a request for the verb asks for on a subject, and whether it
// asks anything of that. met are the conditions that the request meets.
func (r Row) Needs(of Subject, met When) (privileges access.Privileges, asks bool) {
	for _, ask := range r.Asks {
		if ask.Of == of && ask.When != Instead && ask.When&^met == 0 {
			privileges, asks = privileges|ask.For, true
		}
	}
	return privileges, asks
}

// Needs returns the privileges that a request for v asks for on a subject; access.See if its caller
// only has to see that. A subject that v asks nothing about is for administrators.
func (v Verb) Needs(of Subject, met When) access.Privileges {
	privileges, asks := rows[v].Needs(of, met)
	if !asks {
		return access.Admin
	}
	return privileges
}

// NeedsFor is Needs of a request that names privileges, and meets ForUpdates or ForGrants: what its
// updates ask for by OfUpdate, or what it grants or revokes.
func (v Verb) NeedsFor(of Subject, met When, named access.Privileges) access.Privileges {
	return v.Needs(of, met) | named
}

// InsteadOf returns the privileges that do in the place of what Needs returns; access.See: none do.
func (r Row) InsteadOf(of Subject) (privileges access.Privileges) {
	for _, ask := range r.Asks {
		if ask.Of == of && ask.When == Instead {
			privileges |= ask.For
		}
	}
	return privileges
}

// asks returns the questions of every verb of a caller. Verbs of the server's own jobs ask none.
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
		ReportMetrics:   one(OfServer, access.See), // about a table that need not exist

		Describe:         one(OfServer, access.See),
		Check:            operate,
		Backup:           operate,
		RotateSecrets:    one(OfServer, access.Admin),
		ListTransactions: operate,
		RetryTransaction: operate,
		AbortTransaction: operate,
		ListTasks:        operate,
		RetryTask:        operate,
		AbortTask:        operate,
		TakeLease:        one(OfObject, access.Write),
		RenewLeases:      one(OfServer, access.See),
		ReleaseLease:     one(OfServer, access.See),
		ListLeases:       operate,
		ClaimWork:        one(OfServer, access.See), // only tables that the caller may write to
		ReportWork:       one(OfServer, access.See), // only of the caller's own work
		LoadMetrics:      append(one(OfServer, access.Audit), Ask{OfServer, access.Operate, Instead}),
	}
	maps.Copy(all, administeringAsks())
	maps.Copy(all, warehousingAsks())
	maps.Copy(all, maintainingAsks())
	return all
}
