package gate

import (
	"moorage"
	"moorage/access"
	"moorage/locks"
)

// The verbs on dropped tables and views.
const (
	ListDropped  Verb = "list-dropped" // shows only objects that the caller may describe
	Undrop       Verb = "undrop"
	PurgeDropped Verb = "purge-dropped"
	Forget       Verb = "forget"
)

// The verbs on protection.
const (
	LoadProtection Verb = "load-protection"
	Protect        Verb = "protect"
)

// The verbs on mirrors. A mirror is a table or view that follows a table or view of another
// catalog.
const (
	LoadMirror    Verb = "load-mirror"
	PutMirror     Verb = "put-mirror"
	EndMirror     Verb = "end-mirror"
	CheckRegister Verb = "check-register"
	ListFiles     Verb = "list-metadata-files"
)

// undoing returns the rows of the verbs on dropped objects, protection and mirrors. The Guard
// admits these verbs, because the code that finds the object checks the caller's privileges.
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
		{Verb: LoadProtection, On: access.Server, Reads: true, AskedLater: true,
			Management: []string{"loadProtection"}},
		{Verb: Protect, On: access.Server, Keyed: true, AskedLater: true, Management: []string{"putProtection"}},
		{Verb: LoadMirror, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadMirror"}},
		{Verb: PutMirror, On: access.Server, Keyed: true, AskedLater: true, Locks: named,
			Management: []string{"putMirror"}},
		{Verb: EndMirror, On: access.Server, Keyed: true, AskedLater: true, Management: []string{"endMirror"}},
		{Verb: CheckRegister, On: access.Server, Reads: true, AskedLater: true,
			Management: []string{"checkRegister"}},
		{Verb: ListFiles, On: access.Server, Reads: true, AskedLater: true,
			Management: []string{"listMetadataFiles"}},
	}
}

// ProtectedBy returns the error for a change that protection refuses. object names the object of
// the change. It is protected by a namespace, or by its warehouse if namespace is empty. own is
// true if the object is that container itself.
func ProtectedBy(object, warehouse string, namespace moorage.Namespace, own bool) error {
	container, name := "warehouse "+warehouse, moorage.ShellWord(moorage.PersonLevels(warehouse)+"/")
	if len(namespace) > 0 {
		container, name = "namespace "+namespace.String(), moorage.PersonName(warehouse, namespace...)
		if len(namespace) > 1 { // a single level could be mistaken for a table
			name += "."
		}
		name = moorage.ShellWord(name)
	}
	if own {
		return moorage.Errorf(moorage.KindForbidden, "%s is protected: moorage protect %s --off", object, name)
	}
	return moorage.Errorf(moorage.KindForbidden, "%s is protected by %s: moorage protect %s --off",
		object, container, name)
}

// FrozenObject returns the error for a change of a mirror. source names the catalog that it
// follows.
func FrozenObject(ident moorage.Identifier, source string) error {
	return moorage.Errorf(moorage.KindForbidden, "%s is a mirror of %s: write there, or end that with "+
		"moorage import cutover", ident, source)
}

// ProtectedObject returns the error for a change of a table or view that is protected itself.
func ProtectedObject(ident moorage.Identifier) error {
	return moorage.Errorf(moorage.KindForbidden, "%s is protected: moorage protect %s --off", ident,
		moorage.ShellWord(ident.PersonName()))
}

// undoingAsks returns the privilege checks of the verbs of undoing. An undrop into another
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

		LoadProtection: {{Of: OfObject, For: access.Describe}},
		Protect:        {{Of: OfObject, For: access.Manage}},

		LoadMirror: {{Of: OfObject, For: access.Describe}},
		PutMirror: {
			{Of: OfObject, For: access.Drop}, {Of: OfContainer, For: access.Create | access.Locate},
			{OfDropped, access.Drop, IfTakingBack}, {OfDropped, access.Drop, IfTakingOver},
			{OfNeighbour, access.Locate, IfForeign},
		},
		EndMirror: {{Of: OfObject, For: access.Manage}},
		CheckRegister: {
			{Of: OfContainer, For: access.Create | access.Locate}, {OfDropped, access.Drop, IfTakingOver},
			{OfNeighbour, access.Locate, IfForeign},
		},
		ListFiles: {{Of: OfObject, For: access.Locate}},
	}
}
