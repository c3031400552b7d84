package gate

import "moorage/access"

// The verbs for looking at objects, and for their labels.
const (
	LoadLabels Verb = "load-labels"
	PutLabels  Verb = "put-labels"
)

// browsing returns the rows of the verbs for looking at objects. The Guard admits each: the code
// that finds the object, of whatever kind, checks the caller's privileges.
func browsing() []Row {
	return []Row{
		{Verb: LoadLabels, On: access.Server, Reads: true, AskedLater: true, Management: []string{"loadLabels"}},
		{Verb: PutLabels, On: access.Server, Keyed: true, AskedLater: true,
			Management: []string{"putLabels", "deleteLabels"}},
	}
}

// browsingAsks returns the privilege checks of the verbs for looking at objects.
func browsingAsks() map[Verb][]Ask {
	return map[Verb][]Ask{
		LoadLabels: {{Of: OfObject, For: access.Describe}},
		PutLabels:  {{Of: OfObject, For: access.Alter}},
	}
}
