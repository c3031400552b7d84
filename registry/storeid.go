package registry

// StoreID is the value of the record StoreIDKey: the ID of this store. Files in a storage contain
// it, so that other stores recognise them as foreign.
type StoreID struct {
	Unknown
	ID ID `json:"id"`
}

// StoreIDKey is the key of the id of the store.
func StoreIDKey() Key { return Key{TableCursor, "store"} }

var storeIDMembers = MembersOf[StoreID]()

// Members implements Value.
func (StoreID) Members() *Members { return storeIDMembers }
