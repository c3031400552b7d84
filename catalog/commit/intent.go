package commit

import (
	"context"
	"log/slog"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// Intent is one requested change of the catalog, as submitted by a verb.
type Intent struct {
	Caller moorage.Caller
	Verb   gate.Verb
	Key    *Key // the idempotency key of the request; nil if it has none
	// On lists the names of the objects, at least one. The identifier of a warehouse or a namespace
	// has an empty name.
	On []moorage.Identifier
	// Lease is a lease that the caller must hold when the change happens. It is nil if the request
	// requires no lease.
	Lease *registry.LeaseID
	// If Silent is true, the intent has no answer, and no answer is stored for its key.
	Silent bool

	// Look checks the present state without locks. It returns a refusal if the intent would fail on
	// that state, and otherwise the scope to lock. Default: it refuses nothing, and the verb locks
	// nothing.
	Look func(ctx context.Context) (Scope, error)
	// Plan reads the records that the verb depends on, and plans the change. It is called again on
	// newer records after ledger.ErrRetry, which it may return itself.
	Plan Planner
	// Drains is true if Plan drops a container. The pipeline first marks the container as dropping.
	Drains bool
	// Edits are the tables and views that a commit, replace or transaction changes; they replace
	// Plan. Several edits happen together.
	Edits []Target
}

// Key makes a mutation happen once, however often its request is sent, and to whichever node. It
// identifies a request of the intent's caller. Method, Path and Body show whether the caller used
// the key for another request before.
type Key struct {
	ID        string // chosen by the client, in canonical spelling
	Warehouse string
	Method    string
	Path      string   // including the query
	Body      [32]byte // SHA-256
	// Internal is true if a node drew the key, in order to forward a request without a key safely
	// to another node. The client does not know that key and may repeat the request without it.
	// Then an earlier success is recognised by its effect, as for a request without a key.
	Internal bool
}

// Planner reads the records that a verb depends on, and returns the plan to change them.
type Planner func(ctx context.Context, attempt *Attempt) (*Plan, error)

// Plans joins the two halves of a Planner: read, which queries the store, and plan, a pure function
// of the state that was read.
func Plans[State any](read func(ctx context.Context, attempt *Attempt) (State, error),
	plan func(attempt *Attempt, state State) (*Plan, error)) Planner {
	return func(ctx context.Context, attempt *Attempt) (*Plan, error) {
		state, err := read(ctx, attempt)
		if err != nil {
			return nil, err
		}
		return plan(attempt, state)
	}
}

// Attempt is the input of one call of a Planner.
type Attempt struct {
	Number int       // the number of earlier attempts
	Now    time.Time // by the clock of this node
	// Change is the change that the attempt makes, without its items.
	Change registry.Change
	On     moorage.Identifier // the first name of the intent
	// KeyExpires is when the key expires, after which its outcome is not returned again. Zero if
	// the request has no key.
	KeyExpires time.Time
	// Container is the namespace or warehouse marked by a drop; nil for other verbs.
	Container *Container
}

// Until returns the time until which an old version of a table may have to be returned again: the
// later of kept and the key's expiry. kept is such a time for another version of the table.
func (a *Attempt) Until(kept time.Time) time.Time {
	return later(kept, a.KeyExpires)
}

// Plan holds the conditions and writes of one Apply, and the work around it. It is data: nothing in
// it has an effect before the pipeline carries it out.
type Plan struct {
	Conditions []registry.Condition
	Writes     []registry.Write
	// Place is where the files of a new object are; set only if the plan creates one.
	Place storage.Place
	// Items are the objects named in the change record.
	Items []registry.Item
	// File is written before the Apply, and deleted if the Apply certainly did not happen. Its
	// location is empty if no file is written.
	File documents.File
	// Read is a version whose existing file was read; it is cached after the Apply. Outdated is a
	// version that is removed from the cache because the table's owner overwrote its file.
	Read, Outdated Kept
	// Folder is a folder to create if the storage has folders; it may be empty. Some engines write
	// to the folder before they commit, and do not create it.
	Folder string
	// Answer is the outcome of the intent.
	Answer Outcome
	// If Empty is true, there is nothing to apply: Answer already is the outcome.
	Empty bool
	// Trimmed are metadata files that are deleted after the Apply.
	Trimmed documents.Trimmed
	// Purges is true if the plan writes a task for a purge worker.
	Purges bool
	// Told is logged at level info after the Apply, unless its message is empty.
	Told Told
}

// Told is a log line about a change. The pipeline adds the caller and the request.
type Told struct {
	Message string
	Attrs   []slog.Attr
}

// Kept names a version of a pointer's file in the cache of package documents.
type Kept struct {
	Pointer  registry.ID
	Version  string
	Document documents.Document
}

// Outcome is the answer of a mutation. At most one of Version, Properties and Changed is set. None
// is set if the answer is empty.
type Outcome struct {
	Version    *Version
	Properties map[string]string           // of a new namespace, not nil
	Changed    *registry.ChangedProperties // of a namespace
	// IsStored is true if this is the stored answer of an attempt with the same key.
	IsStored bool
}

// Version is one version of a table or view, as returned by loads and mutations.
type Version struct {
	Ident    moorage.Identifier
	Pointer  registry.ID // zero for a staged table
	Location string      // of the metadata file; empty for a staged table, which has none
	Document documents.Document
	Storage  storage.Store // of the files
	// Registration is the registration of the pointer; zero if it is no longer known.
	Registration registry.ID
	// Labels is the version of the labels; zero if there are none, or if it is no longer known.
	Labels registry.ID
	// Found is the found pointer if the version is for a load, and otherwise nil.
	Found *directory.Found
}

// VersionOf returns the version of ident with the pointer in found and the given document.
func VersionOf(found *directory.Found, ident moorage.Identifier, document documents.Document) *Version {
	return &Version{
		ident, found.Pointer.ID, found.Pointer.MetadataLocation, document, found.Storage, found.Pointer.Registration,
		found.Pointer.Labels, found,
	}
}

// IsStaged reports whether o is a table that was not stored.
func (o Outcome) IsStaged() bool { return o.Version != nil && o.Version.Location == "" }

// record returns the part of o that is stored.
func (o Outcome) record() registry.Outcome {
	switch {
	case o.Version != nil:
		version := &registry.TableVersion{
			Ident: o.Version.Ident, Pointer: o.Version.Pointer, TableUUID: o.Version.Document.UUID(),
			MetadataLocation: o.Version.Location, Registration: o.Version.Registration,
		}
		if _, ok := o.Version.Document.(*metadata.ViewDocument); ok {
			return registry.Outcome{View: version}
		}
		return registry.Outcome{Table: version}
	case o.Changed != nil:
		return registry.Outcome{Changed: o.Changed}
	}
	return registry.Outcome{Properties: o.Properties}
}

// Target is one table or view that an intent edits.
type Target struct {
	Kind  *directory.Kind
	Ident moorage.Identifier
	// Asks are the privileges that the caller needs on the target. access.See only requires that
	// the target is visible to the caller. A Create checks privileges itself.
	Asks access.Privileges
	Edit Edit
	// Admits, if it is set, is called with each version of the pointer on which the edit is built.
	// Its error refuses the edit. It is called only for a caller with the privileges Asks. An edit
	// with Admits shares no version with another edit.
	Admits func(ctx context.Context, found *directory.Found) error
	// Pointer identifies the table or view directly. It is zero if the target is found by its name.
	Pointer registry.ID
	// Create, if it is set, creates the table instead of editing it. The name must not be in use.
	Create Planner
	// MadeBefore reports whether base, the present version of the name, is the result of an earlier
	// Create. It recognises a repeated request without a key. It must be set if Create is.
	MadeBefore func(base documents.Document) bool
}

// Edit is the change that a commit requests of a table or view. Its methods are pure.
type Edit interface {
	// Check checks the requirements on the present version, before any update.
	Check(base documents.Document) error
	// Next returns base after the updates, or base itself if they change nothing. It checks all
	// requirements on the way.
	Next(base documents.Document, env metadata.Env) (documents.Document, error)
	// Asks reports whether the edit has updates.
	Asks() bool
	// Actions returns the updates of the edit for its change record, in their order; see
	// registry.Item.Actions. If Next chooses the updates, these are the updates of its last call.
	Actions() []string
	// Replays reports whether base already contains all updates.
	Replays(base documents.Document) bool
	// Pins reports whether the requirements name the uuid. Then the edit follows its pointer, even
	// through a rename; otherwise it follows the name.
	Pins() bool
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
