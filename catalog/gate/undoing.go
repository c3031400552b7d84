package gate

import (
	"moorage/access"
	"moorage/locks"
)

// The verbs on dropped tables and views.
const (
	ListDropped  Verb = "list-dropped" // shows what the caller may describe
	Undrop       Verb = "undrop"
	PurgeDropped Verb = "purge-dropped"
	Forget       Verb = "forget"
)

// undoing returns the rows of the verbs on dropped objects. The Guard admits them: the code that
// finds the dropped object checks the caller's privileges.
func undoing() []Row {
	named := []locks.Level{locks.LevelShard, locks.LevelPointer}
	pointer := []locks.Level{locks.LevelPointer}
	return []Row{
		{Verb: ListDropped, On: access.Server, Reads: true, AskedLater: true, Management: []string{"listDropped"}},
		{Verb: Undrop, On: access.Server, Keyed: true, AskedLater: true, Locks: named,
			Management: []string{"undrop"}},
		{Verb: PurgeDropped, On: access.Server, Keyed: true, AskedLater: true, Locks: pointer,
			Management: []string{"purgeDropped"}},
		{Verb: Forget, On: access.Server, Keyed: true, AskedLater: true, Locks: pointer,
			Management: []string{"forgetDropped"}},
	}
}

// undoingAsks returns the privilege checks of the verbs on dropped objects. An undrop into another
// namespace changes the inherited grants, as a rename does, so it also requires manage.
func undoingAsks() map[Verb][]Ask {
	return map[Verb][]Ask{
		ListDropped: {{Of: OfObject}, {Of: OfDropped, For: access.Describe}}, // OfObject: the warehouse
		Undrop: {
			{Of: OfDropped, For: access.Drop}, {OfDropped, access.Manage, IfMoving},
			{Of: OfContainer, For: access.Create}, {OfContainer, access.Locate, IfLocated},
			{OfObject, access.Drop, IfReplacing},
		},
		PurgeDropped: {{Of: OfDropped, For: access.Purge}},
		Forget:       {{Of: OfDropped, For: access.Drop}},
	}
}
