package client

import (
	"time"
)

// WarehouseSummary is a warehouse in a list.
type WarehouseSummary struct {
	Name       string   `json:"name"`
	Location   string   `json:"location"`
	Delegation []string `json:"delegation"` // offered to engines, the preferred one first; never null
}

// Warehouse is everything about a warehouse except its secret.
type Warehouse struct {
	WarehouseSummary
	ID               string            `json:"id"`
	AllowedLocations []string          `json:"allowed-locations"` // never null
	Storage          map[string]string `json:"storage"`           // options of its storage; never null
	Properties       map[string]string `json:"properties"`        // never null
	Secret           *WarehouseSecret  `json:"secret"`            // null if it has no secret
	Creator          string            `json:"creator,omitempty"`
	WaitingPurges    WaitingPurges     `json:"waiting-purges"`
	// Health is the answering node's view of the storage. It is nil if the node has no such view.
	Health *StorageHealth `json:"storage-health,omitempty"`
}

// StorageHealth is a node's view of the storage of a warehouse.
type StorageHealth struct {
	Failing []StorageFailure `json:"failing"` // never null
	// FreeBytes is the free space on the disk of a local folder. It is nil if unknown.
	FreeBytes *uint64 `json:"free-bytes,omitempty"`
}

// StorageFailure reports that calls to a storage fail.
type StorageFailure struct {
	Calls string    `json:"calls"` // reads, writes or credentials
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"` // when a call last failed
	Error string    `json:"error"`
}

// WaitingPurges counts the dropped tables of a warehouse whose purges have not begun. Until then
// the tables can be restored.
type WaitingPurges struct {
	Tables int   `json:"tables"`
	Bytes  int64 `json:"bytes"` // size of their files, from the tables' metadata
}

// WarehouseSecret describes the secret of a warehouse. The secret itself is never returned.
type WarehouseSecret struct {
	Kind string    `json:"kind"` // access-key, service-account, client-secret, account-key or unknown
	Set  time.Time `json:"set"`
	By   string    `json:"by"` // the caller that set it
}

// WarehouseSpec is a request to create a warehouse.
type WarehouseSpec struct {
	Name             string            `json:"name"`
	Location         string            `json:"location"`
	AllowedLocations []string          `json:"allowed-locations,omitempty"`
	Storage          map[string]string `json:"storage,omitempty"`
	Properties       map[string]string `json:"properties,omitempty"`
	Delegation       []string          `json:"delegation,omitempty"`
	// Secret has the server's credentials for the storage. If it is nil, the server uses the
	// credentials of its process.
	Secret map[string]string `json:"secret,omitempty"`
}

// WarehouseChange is a request to change a warehouse. Absent members stay unchanged.
type WarehouseChange struct {
	// In Storage and Properties, a string sets a member, and null removes it.
	Storage    map[string]*string `json:"storage,omitempty"`
	Properties map[string]*string `json:"properties,omitempty"`
	// AllowLocations are added to the allowed locations of the warehouse, and RemoveLocations are
	// removed.
	AllowLocations  []string `json:"allow-locations,omitempty"`
	RemoveLocations []string `json:"remove-locations,omitempty"`
	// Delegation lists the delegations that the warehouse offers from now on. Nil means no change.
	Delegation *[]string `json:"delegation,omitempty"`
	// Secret is the new secret. Nil means no change, and an empty map removes the secret.
	Secret *map[string]string `json:"secret,omitempty"`
}

// WarehouseTrial is one test of the storage of a warehouse.
type WarehouseTrial struct {
	Name    string `json:"name"` // files, vended-credentials or remote-signing
	Passed  bool   `json:"passed"`
	Failure string `json:"failure,omitempty"`
}

// WarehouseValidation is the result of testing the storage of a warehouse.
type WarehouseValidation struct {
	Passed bool             `json:"passed"` // all tests passed
	Trials []WarehouseTrial `json:"trials"`
	// Stopped lists the delegations that the warehouse no longer offers, because its storage does
	// not enforce them. It is never null.
	Stopped []string `json:"stopped"`
	// Features lists the features that the storage lacks, or implements in its own way. It is never
	// null.
	Features []StorageFeature `json:"features"`
}

// StorageFeature is a feature that not all storages of the same kind have.
type StorageFeature struct {
	Name  string `json:"name"`
	Value string `json:"value"` // for human readers
}

// WarehousesPage is a page of warehouses.
type WarehousesPage struct {
	Warehouses []WarehouseSummary `json:"warehouses"`
	NextPage
}

// SecretsRotation is a request to reseal all secrets.
type SecretsRotation struct {
	// KeepKey makes the server reseal with the present key instead of a new key.
	KeepKey bool `json:"keep-key,omitempty"`
}

// SecretsRotated is the result of resealing the secrets of a store.
type SecretsRotated struct {
	Key    string `json:"key"`              // id of the key that seals from now on
	Before string `json:"before,omitempty"` // id of the previous key, if a new key was drawn
	Sealed int    `json:"sealed"`           // how many secrets were resealed
}

// Tombstone is the location of a dropped table or view. The table or view may have left files
// there.
type Tombstone struct {
	Location  string    `json:"location"`
	Table     string    `json:"table"` // its last name
	TableUUID string    `json:"table-uuid"`
	Ended     time.Time `json:"ended"`
	How       string    `json:"how"` // purge, unregister, window, forget or takeover
	Lasting   bool      `json:"lasting"`
	// ReachableUntil is the time until which engines may hold credentials for the location. It is
	// nil if no engine holds any.
	ReachableUntil *time.Time `json:"reachable-until,omitempty"`
}

// TombstonesPage is a page of tombstones.
type TombstonesPage struct {
	Tombstones []Tombstone `json:"tombstones"`
	NextPage
}

// TombstoneClear is a request to remove a tombstone.
type TombstoneClear struct {
	Location string `json:"location"`
}
