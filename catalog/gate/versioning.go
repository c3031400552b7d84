package gate

import "moorage/access"

// The verbs on the versions of tables and views.
const (
	LoadHistory  Verb = "load-history"
	LoadVersion  Verb = "load-version"
	DiffVersions Verb = "diff-versions"
	Rollback     Verb = "rollback-table"
	ReadRows     Verb = "read-rows"
)

// versioning returns the rows of the verbs on the versions of tables and views.
func versioning() []Row {
	return []Row{
		// Package history finds the object, and decides about each change.
		{Verb: LoadHistory, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadHistory"}},
		{Verb: LoadVersion, On: access.Table, Reads: true, Management: []string{"loadMetadata"}},
		{Verb: DiffVersions, On: access.Table, Reads: true, Management: []string{"diffVersions"}},
		{Verb: ReadRows, On: access.Table, Reads: true, Management: []string{"readRows"}},
		{Verb: Rollback, On: access.Table, Keyed: true, Management: []string{"rollbackTable"}},
	}
}

// versioningAsks returns the privilege checks of the verbs on versions. The commit made by a
// rollback has the checks of Commit.
func versioningAsks() map[Verb][]Ask {
	describe := []Ask{{Of: OfObject, For: access.Describe}}
	return map[Verb][]Ask{
		LoadHistory: describe, LoadVersion: describe, DiffVersions: describe, Rollback: describe,
		ReadRows: {{Of: OfObject, For: access.Read}},
	}
}
