package gate

import "moorage/access"

// warehousingAsks returns the privilege checks of the warehouse verbs that exist only in the
// management API. A caller with admin also passes a check of access.Manage.
func warehousingAsks() map[Verb][]Ask {
	return map[Verb][]Ask{
		ShowWarehouse:     {{Of: OfObject, For: access.Manage}},
		ChangeWarehouse:   {{OfServer, access.Admin, IfReached}, {Of: OfObject, For: access.Manage}},
		ValidateWarehouse: {{Of: OfObject, For: access.Manage}},
		ListTombstones:    {{Of: OfObject, For: access.Locate}},
		ClearTombstone:    {{Of: OfObject, For: access.Locate | access.Purge}},
	}
}
