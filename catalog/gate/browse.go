package gate

import "moorage/access"

// The verbs for looking at objects, and for their labels.
const (
	LoadLabels    Verb = "load-labels"
	PutLabels     Verb = "put-labels"
	LoadObject    Verb = "load-object"
	ListObjects   Verb = "list-objects"
	SearchObjects Verb = "search-objects" // shows only objects visible to the caller
	LoadStats     Verb = "load-stats"
	LoadHealth    Verb = "load-health"
	ListManifests Verb = "list-manifests"
	ListRefusals  Verb = "list-refusals" // refused commits
	ListDenials   Verb = "list-denials"
	LoadTop       Verb = "load-top"
	LoadCluster   Verb = "load-cluster"
)

// browsing returns the rows of the verbs for looking at objects. The Guard admits the verbs on an
// object, because the code that finds the object checks the caller's privileges.
func browsing() []Row {
	return []Row{
		{Verb: LoadLabels, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadLabels"}},
		{Verb: PutLabels, On: access.Server, Keyed: true, AskedLater: true,
			Management: []string{"putLabels", "deleteLabels"}},
		{Verb: LoadObject, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadObject"}},
		{Verb: ListObjects, On: access.Server, Reads: true, AskedLater: true, Management: []string{"listObjects"}},
		{Verb: LoadStats, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadStats"}},
		{Verb: LoadHealth, On: access.Table, Reads: true, Management: []string{"loadHealth"}},
		{Verb: ListManifests, On: access.Table, Reads: true, Management: []string{"listManifests"}},
		{Verb: ListRefusals, On: access.Server, Reads: true, AskedLater: true, Management: []string{"listRefusals"}},
		{Verb: ListDenials, On: access.Server, Reads: true, Management: []string{"listDenials"}},
		{Verb: LoadTop, On: access.Server, Reads: true, Management: []string{"loadTop"}},
		{Verb: LoadCluster, On: access.Server, Reads: true, Management: []string{"loadCluster"}},
		{Verb: SearchObjects, On: access.Server, Reads: true, Management: []string{"searchObjects"}},
	}
}

// browsingAsks returns the privilege checks of the verbs for looking at objects.
func browsingAsks() map[Verb][]Ask {
	return map[Verb][]Ask{
		LoadLabels: {{Of: OfObject, For: access.Describe}},
		PutLabels:  {{Of: OfObject, For: access.Alter}},

		LoadObject:    {{Of: OfObject, For: access.Describe}},
		ListObjects:   {{Of: OfObject, For: access.See}}, // with describe, rows have more fields
		LoadStats:     {{Of: OfObject, For: access.Describe}},
		LoadHealth:    {{Of: OfObject, For: access.Describe}},
		ListManifests: {{Of: OfObject, For: access.Read}}, // bounds are values of rows
		ListRefusals:  {{Of: OfObject, For: access.Describe}},
		ListDenials:   {{Of: OfServer, For: access.Audit}},
		LoadTop:       {{Of: OfServer, For: access.Operate}},
		LoadCluster:   {{Of: OfServer, For: access.Operate}},
		SearchObjects: {{Of: OfServer, For: access.See}},
	}
}
