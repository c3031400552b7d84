package commit

import (
	"context"
	"log/slog"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/verb"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// Intent is what a verb hands in: one change of the catalog that somebody asks for.
type Intent struct {
	Caller moorage.Caller
	Verb   verb.Verb
	Key    *Key // the idempotency key of the request; nil: it has none
	// On are the names that the verb is used on, one at least. A warehouse or a namespace has an
	// empty name.
	On []moorage.Identifier
	// Lease is one that the caller must hold when the change happens; nil: none.
	Lease *registry.LeaseID
	// Silent says that nothing is answered, and nothing kept to be answered again.
	Silent bool

	// Look looks at the present state without locks. It refuses what fails there, and returns what
	// to lock. Default: it refuses nothing, and the verb locks nothing.
	Look func(ctx context.Context) (Scope, error)
	// Plan reads what the verb depends on, and plans it. It is called again on newer records after
	// ledger.ErrRetry, which it may return itself.
	Plan Planner
	// Drains says that Plan drops a container, which is marked before.
	Drains bool
	// Edits are what a commit, a replace or a transaction changes, instead of Plan. Several of them
	// happen together.
	Edits []Target
}

// Key makes a mutation happen once, however often it is sent, and to whichever node. It stands for
// a request of the caller of the intent. Method, Path and Body distinguish that request from
// others.
type Key struct {
	ID        string // as the client drew it, in one spelling
	Warehouse string
	Method    string
	Path      string   // with the query
	Body      [32]byte // SHA-256
	// Internal says that a node drew the key, for one sending of a request without one. Then the
	// client may send the request again without that key, and an earlier success is recognised by
	// what it left, as without a key.
	Internal bool
}

// Planner reads the records that a verb depends on, and returns what is to become of them.
type Planner func(ctx context.Context, attempt *Attempt) (*Plan, error)

// Plans joins the two halves of a Planner: read, which asks the store, and plan, a pure function of
// what was read.
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

// Attempt is what the pipeline gives to one call of a Planner.
type Attempt struct {
	Number int       // of the earlier attempts
	Now    time.Time // by the clock of this node
	// ID is that of the change that the attempt makes; zero for a table of a transaction.
	ID registry.ID
	On moorage.Identifier // the first name that the verb is used on
	// KeyExpires is until when the outcome may be asked for again; zero if the request has no key.
	KeyExpires time.Time
	// Container is the namespace or warehouse that a drop has marked; nil for other verbs.
	Container *Container
}

// Until returns until when a version of a table may have to be answered again. kept is until when
// another version of the table may; the later of the two counts.
func (a *Attempt) Until(kept time.Time) time.Time {
	return later(kept, a.KeyExpires)
}

// Container is a namespace or warehouse in state dropping, and whether something is directly in it.
type Container struct {
	Ident  moorage.Identifier // without a name
	ID     registry.ID
	Record registry.Record
	Empty  bool
}

// Plan is what one Apply must require and write, and what goes with it. It is data: nothing in it
// has an effect before the pipeline carries it out.
type Plan struct {
	Conditions []registry.Condition
	Writes     []registry.Write
	// Place is where the files of the object are; only for one that is made.
	Place storage.Place
	// Items are the objects that the change record names.
	Items []registry.Item
	// File is written before the Apply, and deleted if the Apply certainly did not happen. It has
	// no location if no file is written.
	File documents.File
	// Read is a version of a file that exists, which is kept in memory after the Apply. Outdated is
	// one that is forgotten: its owner wrote the file again.
	Read, Outdated Kept
	// Folder is made where the storage has folders; empty for none. Some engines write there before
	// they commit, and do not make it.
	Folder string
	// Answer is the outcome of the intent.
	Answer Outcome
	// Empty says that there is nothing to apply: the answer holds as things are.
	Empty bool
	// Trimmed are metadata files that are deleted after the Apply.
	Trimmed documents.Trimmed
	// Purges says that a task was written which a worker has to carry out.
	Purges bool
	// Told is what the log says, at info, once the plan is true. Without a message it says nothing.
	Told Told
}

// Told is a line of the log about a change. The pipeline adds the caller and the request.
type Told struct {
	Message string
	Attrs   []slog.Attr
}

// Kept names a version of a file of a pointer, as package documents keeps it.
type Kept struct {
	Pointer  registry.ID
	Version  string
	Document documents.Document
}

// Outcome is what a mutation answers. At most one member is set, and none if there is nothing to
// answer.
type Outcome struct {
	Version    *Version
	Properties map[string]string           // of a new namespace, not nil
	Changed    *registry.ChangedProperties // of a namespace
}

// Version is one version of a table or view, as loads and mutations answer it.
type Version struct {
	Ident    moorage.Identifier
	Pointer  registry.ID // zero for a staged table
	Location string      // of the metadata file; empty for a staged table, which has none
	Document documents.Document
	Storage  storage.Store // that the files are in
	// Registration is that of the pointer; zero if it is not known any more.
	Registration registry.ID
	// Found is what was found, if it was looked at for a load; nil otherwise.
	Found *directory.Found
}

// VersionOf returns the version of ident that found names, which is in document.
func VersionOf(found *directory.Found, ident moorage.Identifier, document documents.Document) *Version {
	return &Version{
		ident, found.Pointer.ID, found.Pointer.MetadataLocation, document, found.Storage, found.Pointer.Registration,
		found,
	}
}

// IsStaged reports whether o is a table that was not stored.
func (o Outcome) IsStaged() bool { return o.Version != nil && o.Version.Location == "" }

// record returns what is kept of o.
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
	// Asks are the privileges on it that its caller needs; access.See: that he sees it. A Create
	// decides itself.
	Asks access.Privileges
	Edit Edit
	// Pointer is the table or view itself, if it is not to be found by its name; zero if it is.
	Pointer registry.ID
	// Create, if it is set, makes the table instead. There must be none of the name.
	Create Planner
	// MadeBefore reports whether base, the present version of the name, shows that Create happened
	// before. A request without a key is recognised by it. It is set if Create is.
	MadeBefore func(base documents.Document) bool
}

// Edit is what a commit asks of a table or view. Its methods are pure.
type Edit interface {
	// Check checks what is required of the present version, before any update.
	Check(base documents.Document) error
	// Next returns base after the updates, or base itself if they change nothing. It checks all
	// requirements on the way.
	Next(base documents.Document, env metadata.Env) (documents.Document, error)
	// Asks reports whether the edit has updates.
	Asks() bool
	// Replays reports whether base shows that all updates have happened before.
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
