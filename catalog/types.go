package catalog

import (
	"context"
	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/rebase"
	"moorage/catalog/vending"
	"moorage/metadata"
	"moorage/registry"
)

// Table is one version of a table, as returned by loads and commits.
type Table struct {
	Identifier moorage.Identifier
	// MetadataLocation is empty for a staged table, which has no file.
	MetadataLocation string
	Document         *metadata.Document
	// Config is the configuration that the client needs to reach the files; may be nil.
	Config map[string]string
	// Registration distinguishes the file at MetadataLocation from its earlier content, if its
	// owner has rewritten and registered it again. It is zero for a file that the catalog wrote.
	Registration registry.ID
	Labels       LabelText

	pointer registry.ID // zero for a staged table
	// found is the result of looking up the pointer, or nil if it was not looked up. staged gives
	// access to the files of a staged table. staged is nil if the table is not staged, or if
	// clients get no access to its files.
	found  *directory.Found
	staged *vending.Reach
	// through are the views through which the table was loaded. It is nil if there are none.
	through *gate.Through
}

// View is one version of a view, as returned by loads and commits.
type View struct {
	Identifier       moorage.Identifier
	MetadataLocation string
	Document         *metadata.ViewDocument
	// Config is the configuration that the client needs to reach the files; may be nil.
	Config map[string]string
	Labels LabelText

	pointer registry.ID
}

// LabelText has the labels of a table or view, for an answer. It is zero for an object without
// labels.
type LabelText struct {
	Version registry.ID
	Text    []byte // a JSON object; nil in the answer of a commit
}

// CreateTableRequest is a request for a new table.
type CreateTableRequest struct {
	Schema        []byte // JSON, required
	PartitionSpec []byte // JSON or nil
	WriteOrder    []byte // JSON or nil
	Location      string // empty: the server chooses
	Properties    map[string]string
	Stage         bool // build the table without storing it
}

// Lease is the id of a lease on a table. Package maintenance/leases grants leases.
type Lease = registry.LeaseID

// ParseLease parses the text of a lease. For invalid text, the error is KindBadRequest.
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
	// Rebase is the request's choice for an append whose branch has moved since its client read the
	// table.
	Rebase RebaseChoice
}

// RebaseChoice is a request's choice for an append whose branch has moved. RebaseOn rebases the
// append onto the head if the table's property moorage.append-rebase is on or on-all. RebaseOff
// refuses the append. RebaseUnset rebases the append only if the property is on-all.
type RebaseChoice = rebase.Choice

// The values of RebaseChoice.
const (
	RebaseUnset = rebase.Unset
	RebaseOn    = rebase.On
	RebaseOff   = rebase.Off
)

// RebaseHeader is the HTTP header in which a request consents to a rebase of its append, or refuses
// it.
const RebaseHeader = rebase.Header

// ParseRebaseChoice parses text, the value of the header called name: "on" or "off". For any other
// value, the error is KindBadRequest.
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

// RegisterRequest is a request to register an existing metadata file as a table.
type RegisterRequest struct {
	MetadataLocation string
	Overwrite        bool
	// mirrorOf names the catalog that the table or view mirrors: see Mirrors.
	mirrorOf string
	// requires is the further requirement of the register; nil for none.
	requires Requires
}

// Requires returns conditions for the Apply of a change of a table or view, or why the change is
// refused. pointer is the id that the table or view has then. Each attempt calls it.
type Requires func(ctx context.Context, pointer registry.ID) ([]registry.Condition, error)

// DropOptions are the options of a drop.
type DropOptions struct {
	Purge bool // delete the files too
}

// PropertiesChange is a request to change a namespace's properties.
type PropertiesChange struct {
	Removals []string
	Updates  map[string]string
}

// PropertiesResult is the effect of a PropertiesChange. Each list is sorted.
type PropertiesResult struct {
	Updated []string // keys that were set
	Removed []string // existing keys that were removed
	Missing []string // keys to remove that did not exist
}
