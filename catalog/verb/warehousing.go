package verb

import "moorage/access"

// warehousingAsks returns the questions of the verbs on a warehouse that only the management API
// has. Who has admin may also do what asks for access.Manage.
func warehousingAsks() map[Verb][]Ask {
	return map[Verb][]Ask{
		ShowWarehouse:     {{Of: OfObject, For: access.Manage}},
		ChangeWarehouse:   {{OfServer, access.Admin, IfReached}, {Of: OfObject, For: access.Manage}},
		ValidateWarehouse: {{Of: OfObject, For: access.Manage}},
		ListTombstones:    {{Of: OfObject, For: access.Locate}},
		ClearTombstone:    {{Of: OfObject, For: access.Locate | access.Purge}},
	}
}
