package catalog

import (
	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/guard"
	"moorage/catalog/rebase"
	"moorage/metadata"
	"moorage/registry"
)

// Page asks for a part of a list that is ordered by name.
type Page struct {
	After string // exclusive; empty: from the start
	Limit int    // at most so many; 0: all
}

// Table is one version of a table, as loads and commits answer it.
type Table struct {
	Identifier moorage.Identifier
	// MetadataLocation is empty for a staged table, which has no file.
	MetadataLocation string
	Document         *metadata.Document
	// Config is what the client needs to reach the files; may be nil.
	Config map[string]string
	// Registration distinguishes the file at MetadataLocation from what it was before its owner
	// wrote and registered it again. It is zero for a file that the catalog wrote.
	Registration registry.ID

	pointer registry.ID // zero for a staged table
	// found is what the pointer was found as; nil if it was not looked for. staged is how the files
	// of a staged table are reached; nil: not at all.
	found  *directory.Found
	staged *reach
	// through are the views by which it was loaded; nil for none.
	through *guard.Through
}

// View is one version of a view, as loads and commits answer it.
type View struct {
	Identifier       moorage.Identifier
	MetadataLocation string
	Document         *metadata.ViewDocument
	// Config is what the client needs to reach the files; may be nil.
	Config map[string]string

	pointer registry.ID
}

// WarehouseSpec is a request for a new warehouse.
type WarehouseSpec struct {
	Name             string
	Location         string
	AllowedLocations []string
	// Storage says how the storage is reached, as storage.Place.Options does. No secrets.
	Storage map[string]string
	// Secrets are what the storage is reached with besides, by the names of storage.Secret. They
	// are sealed before they are stored, and nobody is answered them. Nil: what the process has.
	Secrets map[string]map[string]string
	// Properties go to every client of the warehouse, as defaults of its own configuration. No
	// secrets.
	Properties map[string]string
	// Delegation says how engines reach the files without a key of their own, the preferred way
	// first. Empty: not at all.
	Delegation []Delegation
}

// Warehouse is a catalog with its own storage location.
type Warehouse struct {
	Name             string
	Location         string
	AllowedLocations []string
	Properties       map[string]string
	Delegation       []Delegation
	// Secrets are the names of those that it has.
	Secrets []string
}

// CreateTableRequest is a request for a new table.
type CreateTableRequest struct {
	Schema        []byte // JSON, required
	PartitionSpec []byte // JSON or nil
	WriteOrder    []byte // JSON or nil
	Location      string // empty: the server chooses
	Properties    map[string]string
	Stage         bool // build it, store nothing
}

// Lease names a lease on a table, as package maintenance/leases gives it out.
type Lease = registry.LeaseID

// ParseLease reads the text of a lease. Anything else is KindBadRequest.
func ParseLease(text string) (Lease, error) {
	lease, err := registry.ParseLeaseID(text)
	if err != nil {
		return lease, moorage.Errorf(moorage.KindBadRequest, "Invalid lease: %w", err)
	}
	return lease, nil
}

// CommitRequest is a request to change one table.
type CommitRequest struct {
	Requirements []metadata.Requirement
	Updates      []metadata.Update
	// Rebase is what the request asks for an append whose branch has moved since its client looked.
	Rebase RebaseChoice
}

// RebaseChoice is what a request asks for an append whose branch has moved. RebaseOn puts it on top
// of the head if the table's moorage.append-rebase is on or on-all. RebaseOff refuses it.
// RebaseUnset rebases it only where the table has on-all.
type RebaseChoice = rebase.Choice

// The choices.
const (
	RebaseUnset = rebase.Unset
	RebaseOn    = rebase.On
	RebaseOff   = rebase.Off
)

// ParseRebaseChoice reads the value of name: "on" or "off". Anything else is KindBadRequest.
func ParseRebaseChoice(name, text string) (RebaseChoice, error) {
	return rebase.ParseChoice(name, text)
}

func (r CommitRequest) step() metadata.Step {
	return metadata.Step{Requirements: r.Requirements, Updates: r.Updates}
}

// CreateViewRequest is a request for a new view.
type CreateViewRequest struct {
	Schema     []byte // JSON, required
	Version    []byte // JSON, required; its ids do not matter
	Location   string // empty: the server chooses
	Properties map[string]string
}

// ReplaceViewRequest is a request to change one view.
type ReplaceViewRequest struct {
	Requirements []metadata.ViewRequirement
	Updates      []metadata.ViewUpdate
}

// TableChange is a request to change one table of a transaction.
type TableChange struct {
	Ident moorage.Identifier
	CommitRequest
}

// RegisterRequest is a request to make a table of an existing metadata file.
type RegisterRequest struct {
	MetadataLocation string
	Overwrite        bool
}

// DropOptions says how a table is dropped.
type DropOptions struct {
	Purge bool // delete its files too
}

// PropertiesChange asks for changes of a namespace's properties.
type PropertiesChange struct {
	Removals []string
	Updates  map[string]string
}

// PropertiesResult says what a PropertiesChange did; each list is sorted.
type PropertiesResult struct {
	Updated []string // keys that were set
	Removed []string // keys that were there and are gone
	Missing []string // keys to be removed that were not there
}
