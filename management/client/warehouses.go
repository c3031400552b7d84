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
	// Health is the answering node's view of the storage. Nil if it has no such view.
	Health *StorageHealth `json:"storage-health,omitempty"`
}

// StorageHealth is a node's view of the storage of a warehouse.
type StorageHealth struct {
	Failing []StorageFailure `json:"failing"` // never null
	// FreeBytes is the free space on the disk of a local folder. Nil if unknown.
	FreeBytes *uint64 `json:"free-bytes,omitempty"`
}

// StorageFailure reports that calls of a storage fail.
type StorageFailure struct {
	Calls string    `json:"calls"` // reads, writes or credentials
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"` // when a call last failed
	Error string    `json:"error"`
}

// WaitingPurges counts the dropped tables of a warehouse that can be restored until their purges
// begin.
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
	// Secret has the credentials of the server for the storage. If nil, the server uses the
	// credentials of its process.
	Secret map[string]string `json:"secret,omitempty"`
}

// WarehouseChange is a request to change a warehouse. Absent members stay unchanged.
type WarehouseChange struct {
	// Storage and Properties set the members that have a string, and remove the members that are
	// null.
	Storage    map[string]*string `json:"storage,omitempty"`
	Properties map[string]*string `json:"properties,omitempty"`
	// AllowLocations are added to the warehouse's allowed locations, and RemoveLocations are
	// removed from them.
	AllowLocations  []string `json:"allow-locations,omitempty"`
	RemoveLocations []string `json:"remove-locations,omitempty"`
	// Delegation has the delegations that the warehouse offers from now on. Nil for no change.
	Delegation *[]string `json:"delegation,omitempty"`
	// Secret is the new secret. Nil for no change; an empty map removes the secret.
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
	// Stopped are the delegations that the warehouse no longer offers, because its storage does not
	// enforce them; never null.
	Stopped []string `json:"stopped"`
	// Features are the features that the storage lacks, or implements in its own way; never null.
	Features []StorageFeature `json:"features"`
}

// StorageFeature is a feature that only some storages of one kind have.
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
	// ReachableUntil is the time until which engines may hold credentials for the location. Nil if
	// no engine holds any.
	ReachableUntil *time.Time `json:"reachable-until,omitempty"`
}

// TombstonesPage is a page of tombstones.
type TombstonesPage struct {
	Tombstones []Tombstone `json:"tombstones"`
	NextPage
}

// TombstoneClear names the tombstone to remove.
type TombstoneClear struct {
	Location string `json:"location"`
}
