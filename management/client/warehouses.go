package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// WarehouseSummary is a warehouse as lists have it.
type WarehouseSummary struct {
	Name       string   `json:"name"`
	Location   string   `json:"location"`
	Delegation []string `json:"delegation"` // what it offers to engines, the preferred way first; never null
}

// Warehouse is all about a warehouse, without its secret.
type Warehouse struct {
	WarehouseSummary
	ID               string            `json:"id"`
	AllowedLocations []string          `json:"allowed-locations"` // never null
	Storage          map[string]string `json:"storage"`           // options of its storage; never null
	Properties       map[string]string `json:"properties"`        // never null
	Secret           *WarehouseSecret  `json:"secret"`            // null: it has none
	Creator          string            `json:"creator,omitempty"`
	WaitingPurges    WaitingPurges     `json:"waiting-purges"`
	// Health is what the node that answers sees of the storage. Nil: no server does.
	Health *StorageHealth `json:"storage-health,omitempty"`
}

// StorageHealth is what a node sees of the storage of a warehouse.
type StorageHealth struct {
	Failing []StorageFailure `json:"failing"` // never null
	// FreeBytes is what fits yet on the disk of a local folder; nil: not known.
	FreeBytes *uint64 `json:"free-bytes,omitempty"`
}

// StorageFailure says that calls of a storage fail.
type StorageFailure struct {
	Calls string    `json:"calls"` // reads, writes or credentials
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"` // when one failed last
	Error string    `json:"error"`
}

// WaitingPurges are the dropped tables of a warehouse that can come back until their purges begin.
type WaitingPurges struct {
	Tables int   `json:"tables"`
	Bytes  int64 `json:"bytes"` // of their files, as far as the tables say it
}

// WarehouseSecret says what secret a warehouse has. Nobody is told the secret itself.
type WarehouseSecret struct {
	Kind string    `json:"kind"` // access-key, service-account, client-secret, account-key or unknown
	Set  time.Time `json:"set"`
	By   string    `json:"by"` // who set it
}

// WarehouseSpec is a request for a new warehouse.
type WarehouseSpec struct {
	Name             string            `json:"name"`
	Location         string            `json:"location"`
	AllowedLocations []string          `json:"allowed-locations,omitempty"`
	Storage          map[string]string `json:"storage,omitempty"`
	Properties       map[string]string `json:"properties,omitempty"`
	Delegation       []string          `json:"delegation,omitempty"`
	// Secret is what the server reaches the storage with. Nil: what its process has.
	Secret map[string]string `json:"secret,omitempty"`
}

// WarehouseChange asks for changes of a warehouse. What it does not name stays as it is.
type WarehouseChange struct {
	// Storage and Properties set what has a text, and remove what is null.
	Storage    map[string]*string `json:"storage,omitempty"`
	Properties map[string]*string `json:"properties,omitempty"`
	// Delegation is what the warehouse offers from now on; nil: what it offers now.
	Delegation *[]string `json:"delegation,omitempty"`
	// Secret is set if it is not nil, and taken away if it is empty.
	Secret *map[string]string `json:"secret,omitempty"`
}

// WarehouseTrial is one thing that was tried on the storage of a warehouse.
type WarehouseTrial struct {
	Name    string `json:"name"` // files, vended-credentials or remote-signing
	Passed  bool   `json:"passed"`
	Failure string `json:"failure,omitempty"`
}

// WarehouseValidation is what was found on the storage of a warehouse.
type WarehouseValidation struct {
	Passed bool             `json:"passed"` // all trials did
	Trials []WarehouseTrial `json:"trials"`
	// Stopped is what the warehouse offered and does not offer any more, because its storage does
	// not enforce it; never null.
	Stopped []string `json:"stopped"`
	// Features are what the storage can do in its own way, or not at all; never null.
	Features []StorageFeature `json:"features"`
}

// StorageFeature is something that not every storage of a kind can do.
type StorageFeature struct {
	Name  string `json:"name"`
	Value string `json:"value"` // for people
}

// WarehousesPage is a page of warehouses.
type WarehousesPage struct {
	Warehouses    []WarehouseSummary `json:"warehouses"`
	NextPageToken *string            `json:"next-page-token"` // null on the last page
}

// SecretsRotation asks for all secrets to be sealed again.
type SecretsRotation struct {
	// KeepKey says that no key is drawn: the secrets are sealed with the present one.
	KeepKey bool `json:"keep-key,omitempty"`
}

// SecretsRotated is what became of the secrets of a store.
type SecretsRotated struct {
	Key    string `json:"key"`              // that seals from now on
	Before string `json:"before,omitempty"` // that sealed before, if another key was drawn
	Sealed int    `json:"sealed"`           // how many secrets were sealed again
}

// Keeper asks a server about warehouses and their secrets. It is safe for concurrent use.
type Keeper struct{ client *Client }

// Tombstone is a location where a table or view lived that is gone, and may have left files.
type Tombstone struct {
	Location  string    `json:"location"`
	Table     string    `json:"table"` // what it was called last
	TableUUID string    `json:"table-uuid"`
	Ended     time.Time `json:"ended"`
	How       string    `json:"how"` // purge, unregister, window, forget or takeover
	Lasting   bool      `json:"lasting"`
	// ReachableUntil is until when engines may hold credentials for the location; nil if they hold
	// none.
	ReachableUntil *time.Time `json:"reachable-until,omitempty"`
}

// TombstonesPage is a page of tombstones.
type TombstonesPage struct {
	Tombstones    []Tombstone `json:"tombstones"`
	NextPageToken *string     `json:"next-page-token"`
}

// TombstoneClear says which tombstone goes.
type TombstoneClear struct {
	Location string `json:"location"`
}

// KeeperOf returns what asks the server of c about warehouses.
func KeeperOf(c *Client) Keeper { return Keeper{c} }

// Warehouses returns a page of the warehouses that the caller sees.
func (k Keeper) Warehouses(ctx context.Context, page Page) ([]WarehouseSummary, string, error) {
	var answer WarehousesPage
	err := k.client.ask(ctx, http.MethodGet, "/warehouses"+query(page), nil, &answer)
	return answer.Warehouses, valueOf(answer.NextPageToken), err
}

// LoadWarehouse returns all about a warehouse.
func (k Keeper) LoadWarehouse(ctx context.Context, name string) (found Warehouse, err error) {
	err = k.client.ask(ctx, http.MethodGet, warehousePath(name), nil, &found)
	return found, err
}

// CreateWarehouse makes a warehouse.
func (k Keeper) CreateWarehouse(ctx context.Context, spec WarehouseSpec) (made Warehouse, err error) {
	err = k.client.ask(ctx, http.MethodPost, "/warehouses", spec, &made)
	return made, err
}

// ChangeWarehouse changes a warehouse.
func (k Keeper) ChangeWarehouse(ctx context.Context, name string, change WarehouseChange) (
	changed Warehouse, err error) {
	err = k.client.ask(ctx, http.MethodPatch, warehousePath(name), change, &changed)
	return changed, err
}

// DropWarehouse removes an empty warehouse.
func (k Keeper) DropWarehouse(ctx context.Context, name string) error {
	return k.client.ask(ctx, http.MethodDelete, warehousePath(name), nil, &Done{})
}

// ValidateWarehouse has the storage of a warehouse tried.
func (k Keeper) ValidateWarehouse(ctx context.Context, name string) (found WarehouseValidation, err error) {
	err = k.client.ask(ctx, http.MethodPost, warehousePath(name)+"/validate", nil, &found)
	return found, err
}

// Tombstones returns a page of what tables and views that are gone left in a warehouse.
func (k Keeper) Tombstones(ctx context.Context, name string, page Page) ([]Tombstone, string, error) {
	var answer TombstonesPage
	err := k.client.ask(ctx, http.MethodGet, warehousePath(name)+"/tombstones"+query(page), nil, &answer)
	return answer.Tombstones, valueOf(answer.NextPageToken), err
}

// ClearTombstone removes one of them, and returns it.
func (k Keeper) ClearTombstone(ctx context.Context, name string, asked TombstoneClear) (left Tombstone, err error) {
	err = k.client.ask(ctx, http.MethodPost, warehousePath(name)+"/tombstones/clear", asked, &left)
	return left, err
}

// RotateSecrets has all secrets sealed again.
func (k Keeper) RotateSecrets(ctx context.Context, rotation SecretsRotation) (rotated SecretsRotated, err error) {
	err = k.client.ask(ctx, http.MethodPost, "/secrets/rotate", rotation, &rotated)
	return rotated, err
}

func warehousePath(name string) string { return "/warehouses/" + url.PathEscape(name) }
