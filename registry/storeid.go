package registry

// StoreID is the value of the record StoreIDKey: the name of the store in files that others may
// find.
type StoreID struct {
	Unknown
	ID ID `json:"id"`
}

// StoreIDKey is the key of the id of the store.
func StoreIDKey() Key { return Key{TableCursor, "store"} }

var storeIDMembers = MembersOf[StoreID]()

// Members implements Value.
func (StoreID) Members() *Members { return storeIDMembers }
