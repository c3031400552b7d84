package registry

// StoreID is the value of the record StoreIDKey: the id by which files in a storage name this
// store, so that other stores recognise them.
type StoreID struct {
	Unknown
	ID ID `json:"id"`
}

// StoreIDKey is the key of the id of the store.
func StoreIDKey() Key { return Key{TableCursor, "store"} }

var storeIDMembers = MembersOf[StoreID]()

// Members implements Value.
func (StoreID) Members() *Members { return storeIDMembers }
