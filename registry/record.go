package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"moorage"
)

// The versions of the layout: the keys of key.go, the states and the values below.
const (
	// FormatFirst is the version of a new store, and the oldest version that this package reads.
	FormatFirst = 1
	// FormatProtection is the version of a store that has or had a protected object: nodes that
	// know only older versions would drop it.
	FormatProtection = 2
	// FormatMirror is the version of a store that has or had a mirror: nodes that know only older
	// versions would commit to it, or delete its files.
	FormatMirror = 3
	// FormatVersion is the newest version that this package knows. A store with a newer version
	// cannot be opened. If the version of the store increases while a node runs, the node ends
	// within seconds. The version never decreases.
	FormatVersion = FormatMirror
)

// ErrNewer means that the store requires a newer version of the program.
var ErrNewer = errors.New("the store needs a newer version of moorage")

// ShardCount is the number of shards of a namespace's registry.
const ShardCount = 16

// Shard returns the shard of a namespace's registry to which name belongs.
func Shard(name string) uint8 { return uint8(xxhash.Sum64String(name) & (ShardCount - 1)) }

// State is the state of a record. A condition can require it without requiring the record's
// version. The numbers are part of the layout and never change.
type State uint8

// The states, by table.
const (
	StateNone State = 0 // records of tables without states; change: it happened

	StateLive     State = 1 // live
	StateDropping State = 2 // warehouse, namespace, location that is a folder: being checked for children
	StateDropped  State = 3 // pointer: no entry names it; it can be restored
	StatePurging  State = 4 // pointer: being purged, or its purge was cancelled; it cannot be restored

	StateTable State = 5 // entry: names a table
	StateView  State = 6 // entry: names a view

	StateOwner State = 7 // location: a table or view lives here
	StateBelow State = 8 // location: tables or views live below it

	StateVoid State = 9 // change: fenced, so its commit can no longer happen

	StatePending   State = 10 // transaction
	StateCommitted State = 11
	StateAborted   State = 12

	StateBlocked State = 13 // task, job: failed permanently, so an operator must act

	StateCollecting State = 14 // job: collects the files to delete
	StateWaiting    State = 15 // job: waits until its NotBefore
	StateDeleting   State = 16 // job: deletes files
	StateAssigned   State = 17 // job: a worker outside the server does it

	StateEnded State = 18 // dropped: the object is gone for good
)

var stateNames = map[State]string{
	StateNone: "none", StateLive: "live", StateDropping: "dropping", StateDropped: "dropped", StatePurging: "purging",
	StateTable: "table", StateView: "view", StateOwner: "owner", StateBelow: "below", StateVoid: "void",
	StatePending: "pending", StateCommitted: "committed", StateAborted: "aborted", StateBlocked: "blocked",
	StateCollecting: "collecting", StateWaiting: "waiting", StateDeleting: "deleting", StateAssigned: "assigned",
	StateEnded: "ended",
}

// IsDropped reports whether a pointer in state s belongs to a table or view that is dropped or
// being purged.
func (s State) IsDropped() bool { return s == StateDropped || s == StatePurging }

// String returns the state's name.
func (s State) String() string {
	if name, ok := stateNames[s]; ok {
		return name
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Warehouse is the value of a warehouse record.
type Warehouse struct {
	Unknown
	ID ID `json:"id"`
	// Location is the URI below which tables are created. It has no trailing slash.
	Location string `json:"location"`
	// AllowedLocations are further URIs below which the locations of tables may be.
	AllowedLocations []string `json:"allowed-locations,omitempty"`
	// Storage has the options of the storage, as in storage.Place.Options, without secrets.
	Storage    map[string]string `json:"storage,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	// Delegation lists the ways for engines to reach the files without their own credentials,
	// preferred first. If it is empty, engines need their own credentials.
	Delegation []string `json:"delegation,omitempty"`
	// Secret refers to the storage credentials that are not in Storage. If it is zero, the
	// process's own credentials are used.
	Secret SecretRef `json:"secret,omitzero"`
	// Since is when the present state began. For StateDropping it is by the store's clock. For
	// other states it is by the node's clock.
	Since time.Time `json:"since"`
	// Creator is the identity of the creator, who owns the warehouse unless its grants record names
	// another owner. The field is set at creation and never changes.
	Creator string `json:"creator,omitempty"`
	// Granted is true if the warehouse may have a grants record.
	Granted bool `json:"granted,omitempty"`
	// If Protected is true, neither the warehouse nor any object in it can be dropped. It is set
	// only in a store of FormatProtection or later.
	Protected bool `json:"protected,omitempty"`
	// Last is the change that wrote the present version.
	Last Last `json:"last,omitzero"`
}

// Roots returns the locations below which the tables and views of the warehouse may live.
func (w Warehouse) Roots() []string { return append([]string{w.Location}, w.AllowedLocations...) }

// Trim lists metadata files that are deleted by a commit after its Apply, or by one run of the
// expiry of former metadata files.
type Trim struct {
	ID ID `json:"id"` // drawn for each trim
	// Node identifies the process that deletes the files. A process draws it when it starts.
	Node ID `json:"node"`
	// At is when the commit was planned, by the node's clock.
	At time.Time `json:"at"`
	// Folder is the folder of the files, and Files lists their names in it.
	Folder string   `json:"folder"`
	Files  []string `json:"files,omitempty"`
	// Before is set by a run of the expiry: the trim then announces all files in Folder whose names
	// were drawn before that time. If it is zero, the trim announces only Files.
	Before time.Time `json:"before,omitzero"`
}

// TrimFence is how long a register refuses a file that is announced in a trim.
const TrimFence = time.Minute

// IsFenced reports whether t is so young that a process may be about to delete its files. It allows
// for small differences between the clocks of nodes.
func (t Trim) IsFenced(now time.Time) bool { return now.Sub(t.At).Abs() < TrimFence }

// FencedTrims returns the fenced elements of trims.
func FencedTrims(trims []Trim, now time.Time) []Trim {
	var fenced []Trim
	for _, t := range trims {
		if t.IsFenced(now) {
			fenced = append(fenced, t)
		}
	}
	return fenced
}

// Namespace is the value of a namespace record.
type Namespace struct {
	Unknown
	ID         ID                `json:"id"`
	Properties map[string]string `json:"properties"`
	// Since is when the present state began. For StateDropping it is by the store's clock. For
	// other states it is by the node's clock.
	Since time.Time `json:"since"`
	// Creator, Granted, Protected and Last have the same meaning as in Warehouse.
	Creator   string `json:"creator,omitempty"`
	Granted   bool   `json:"granted,omitempty"`
	Protected bool   `json:"protected,omitempty"`
	Last      Last   `json:"last,omitzero"`
}

// Entry is the value of an entry record: a name in a namespace. The record's state is StateTable or
// StateView.
type Entry struct {
	Unknown
	Pointer ID    `json:"pointer"`
	Shard   uint8 `json:"shard"`
	// Creator is a copy of the pointer's Creator, so that a list of entries shows which tables a
	// principal created.
	Creator string `json:"creator,omitempty"`
}

// Pointer is the value of a pointer record: one table or view, and its current metadata file.
type Pointer struct {
	Unknown
	ID               ID                `json:"id"`
	Warehouse        string            `json:"warehouse"`
	Namespace        moorage.Namespace `json:"namespace"`
	Name             string            `json:"name"`
	NamespaceID      ID                `json:"namespace-id"`
	View             bool              `json:"view,omitempty"`
	TableUUID        string            `json:"table-uuid"` // of a view, its view-uuid
	MetadataLocation string            `json:"metadata-location"`
	// Registration is the commit id of the register that named MetadataLocation. It is zero if the
	// catalog wrote that file. The owner of a registered file may overwrite it and register it
	// again.
	Registration ID `json:"registration,omitzero"`
	// Claims lists the normalised locations claimed by the pointer, present location last.
	Claims []string `json:"claims"`
	// Since is when the present state began, or when a purge was cancelled. The time of a dropped
	// state is by the store's clock. Other times are by the node's clock.
	Since time.Time `json:"since"`
	// Dropped is when the pointer was dropped, by the store's clock. It stays the same when a purge
	// sets Since. It is zero if the table is live, or if a node of version 0.1.0 dropped it. Such a
	// node also keeps an earlier value, see DroppedAt.
	Dropped time.Time `json:"dropped,omitzero"`
	// Task is the id of the task of the purge that the drop requested. It is zero if there is no
	// purge, or if the purge was cancelled.
	Task ID `json:"task,omitzero"`
	// PurgeDelay is how long the purge waits after Since, so that the table can be restored. If it
	// is zero, the purge may begin at once, or has begun. A waiting purge has a record at
	// WaitingKey, and no task record yet.
	PurgeDelay time.Duration `json:"purge-delay-ns,omitempty"`
	// Storage is the storage of the warehouse. The drop copies it into the pointer, because the
	// warehouse may be deleted before the files are.
	Storage map[string]string `json:"storage,omitempty"`
	// WarehouseID is the id of the warehouse. The drop also copies it, because another warehouse
	// may get the name. It is zero if the table is live.
	WarehouseID ID `json:"warehouse-id,omitzero"`
	// Secret is the id of the secret of the warehouse. The drop also copies it. It is zero if the
	// warehouse has no secret.
	Secret ID `json:"secret,omitzero"`
	// ReplayableUntil is the time until which a repeated request may have to return a version of
	// the table. A purge waits until then. It is zero if there is no such version.
	ReplayableUntil time.Time `json:"replayable-until,omitzero"`
	// ReachableUntil is the time, by the store's clock, until which engines may hold credentials
	// for the locations of a dropped table. Until then no other table can claim the locations. It
	// is zero if the warehouse issues no credentials.
	ReachableUntil time.Time `json:"reachable-until,omitzero"`
	// Trims lists the metadata files that commits remove from the log and then delete, and the
	// files that the expiry deletes. A trim stays until its files are known to be deleted, or for a
	// minute. During that time no register accepts the files.
	Trims []Trim `json:"trims,omitempty"`
	// Creator and Granted have the same meaning as in Warehouse. If Granted is true, the Apply that
	// renames or ends the pointer also writes its grants record.
	Creator string `json:"creator,omitempty"`
	Granted bool   `json:"granted,omitempty"`
	// Labels is the version of the label record, a hash of its content. It is zero if there is no
	// such record. One Apply writes both.
	Labels ID `json:"labels,omitzero"`
	// If Protected is true, the table or view cannot be dropped. See Warehouse.
	Protected bool `json:"protected,omitempty"`
	// Frozen names the catalog that the table or view mirrors; it is empty for other tables and
	// views. Until an import ends that, only the import moves the pointer, and nothing deletes the
	// files. It is set only in a store of FormatMirror or later.
	Frozen string `json:"frozen,omitempty"`
	// Last is the last change that wrote the pointer. Steps without a change, such as an
	// announcement of Trims, leave it unchanged.
	Last Last `json:"last,omitzero"`
}

// Identifier returns the name of the table or view, or its last name.
func (p Pointer) Identifier() moorage.Identifier {
	return moorage.Identifier{Warehouse: p.Warehouse, Namespace: p.Namespace, Name: p.Name}
}

// TableUUIDClaim is the value of a table-uuid record.
type TableUUIDClaim struct {
	Unknown
	Pointer ID `json:"pointer"`
}

// LocationClaim is the value of a location record in state owner.
type LocationClaim struct {
	Unknown
	Pointer ID `json:"pointer,omitzero"`
	// Since is when the claim began, by the store's clock. Older files may belong to a table that
	// lived at the location before, so orphan removal keeps them.
	Since time.Time `json:"since,omitzero"`
	// Adopted is when an operator allowed orphan removal to delete older files too, and AdoptedBy
	// is the operator. Adopted is zero if no operator allowed that.
	Adopted   time.Time `json:"adopted,omitzero"`
	AdoptedBy string    `json:"adopted-by,omitempty"`
}

// Keeps reports whether orphan removal must keep a file of the location that was written at this
// time. It must if the file is older than the claim and no operator allowed its removal.
func (c LocationClaim) Keeps(written time.Time) bool {
	return c.Adopted.IsZero() && written.Before(c.Since)
}

// The ways in which the claim of a location ended.
const (
	EndedPurge      = "purge"      // the server deleted the files
	EndedUnregister = "unregister" // the table left the catalog with its files
	EndedWindow     = "window"     // the time to undrop the table ended, and the files stay
	EndedForget     = "forget"     // a purge that had begun was cancelled, and some files may be left
	EndedTakeover   = "takeover"   // another table or view took the location of the dropped one
)

// Tombstone is the value of a tombstone record: a table or view lived at the location of its key,
// and may have left files there. The table may be live in another catalog.
type Tombstone struct {
	Unknown
	Pointer     ID                 `json:"pointer"`
	Table       moorage.Identifier `json:"table"`      // its last name
	TableUUID   string             `json:"table-uuid"` // of a view, its view-uuid
	WarehouseID ID                 `json:"warehouse-id,omitzero"`
	// Ended is when the claim ended, by the store's clock. How is one of the constants above, such
	// as EndedPurge.
	Ended time.Time `json:"ended"`
	How   string    `json:"how"`
	// Lasting is true if the tombstone stays until an operator clears it. Otherwise the tombstone
	// ends at ReachableUntil.
	Lasting bool `json:"lasting,omitempty"`
	// ReachableUntil is the time, by the store's clock, until which engines may hold credentials
	// for the location. Until then only the table with the uuid TableUUID can claim the location.
	// It is zero if there are no such credentials.
	ReachableUntil time.Time `json:"reachable-until,omitzero"`
	// MetadataLocation and Trims are the values that the pointer had when it ended. A register that
	// restores the table refuses fenced files in Trims, and the new pointer inherits Trims.
	MetadataLocation string `json:"metadata-location,omitempty"`
	Trims            []Trim `json:"trims,omitempty"`
}

// Change is the value of a change record: the effect of one Apply. Its state is StateNone, or
// StateVoid if the commit was fenced before it happened.
type Change struct {
	Unknown
	ID        ID                 `json:"id"` // the commit id
	Operation string             `json:"operation"`
	Ident     moorage.Identifier `json:"identifier"` // Name is empty for a namespace
	Principal string             `json:"principal"`
	RequestID string             `json:"request-id,omitempty"`
	TraceID   string             `json:"trace-id,omitempty"` // of the request's trace; see moorage.TraceID
	Client    string             `json:"client,omitempty"`   // program of the caller; see moorage.Caller
	Time      time.Time          `json:"time"`
	// Group lists the requests that the change carried out together, in order. It is nil for a
	// single request.
	Group []Member `json:"members,omitempty"`
	// Items are the objects that the change affected.
	Items []Item `json:"items,omitempty"`
	// Versions lists the written records, in the order of the batch; Apply fills it in.
	Versions []Version `json:"versions,omitempty"`
}

// Member is one of several requests that were carried out by one change.
type Member struct {
	Operation string    `json:"operation"`
	Principal string    `json:"principal"`
	RequestID string    `json:"request-id,omitempty"`
	TraceID   string    `json:"trace-id,omitempty"`
	Client    string    `json:"client,omitempty"`
	Time      time.Time `json:"time"`               // when the request arrived
	Snapshot  int64     `json:"snapshot,omitempty"` // snapshot id that it added, or zero
}

// Task is the value of a task record: work that an earlier operation left to a worker, or to an
// operator.
type Task struct {
	Unknown
	ID        ID        `json:"id"`
	Kind      string    `json:"kind"`    // TaskPurge or TaskRecovery
	Pointer   ID        `json:"pointer"` // its files are purged; zero for a recovery
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"not-before,omitzero"` // earliest start; at once if zero
	Attempts  int       `json:"attempts,omitempty"`
	LastError string    `json:"last-error,omitempty"`
	// Begun counts the attempts that began after the last attempt that ended with any result. The
	// processes of these attempts died, perhaps because of the task.
	Begun int `json:"begun,omitempty"`
}

// AsOf returns t as of the time now of the store's clock. If that clock was ahead when t was
// created, moved is true and the whole wait begins again now.
func (t Task) AsOf(now time.Time) (at Task, moved bool) {
	if !IsAhead(t.Created, now) {
		return t, false
	}
	if !t.NotBefore.IsZero() {
		t.NotBefore = now.Add(max(0, t.NotBefore.Sub(t.Created)))
	}
	t.Created = now
	return t, true
}

// aheadMax is how far a time in a record may be ahead of the store's clock. It allows for the
// difference between the clocks of a node and of the store.
const aheadMax = time.Minute

// IsAhead reports whether the time written, at which a record was written, is ahead of the present
// time now of the store's clock. Then one of the clocks was wrong, and a wait that begins at the
// former time must begin at now instead.
func IsAhead(written, now time.Time) bool { return written.After(now.Add(aheadMax)) }

// BegunMax is the maximum number of consecutive attempts of a task, or tries of a job, that end
// with the death of their process. After that an operator must decide, because another attempt
// might end the next process too.
const BegunMax = 5

// The kinds of tasks.
const (
	// TaskPurge deletes a dropped table's files.
	TaskPurge = "purge"
	// TaskRecovery marks a transaction whose recovery has failed permanently. The task has the id
	// of the transaction, and its state is StateBlocked.
	TaskRecovery = "recovery"
)

// DecodeTask reads the record of a task. Like a damaged value, an unknown kind or state is an
// error, and so is an ID that differs from the ID in the key. The error names the record's key.
func DecodeTask(record Record) (Task, error) {
	task, err := Decode[Task](record)
	switch {
	case err != nil:
	case TaskKey(task.ID) != record.Key:
		err = fmt.Errorf("%s holds the task %s", record.Key, task.ID)
	case task.Kind != TaskPurge && task.Kind != TaskRecovery:
		err = fmt.Errorf("%s is of the kind %q, which is not known", record.Key, task.Kind)
	case record.State != StateNone && record.State != StateBlocked:
		err = fmt.Errorf("%s has the state %s, which no task has", record.Key, record.State)
	}
	return task, err
}

// Assignment is the value of an assignment record. The record's key names a piece of work. One
// process does the work, and other processes do not begin it until the assignment ends. An
// assignment only saves work: correctness does not depend on it. Change records do not list
// assignments.
type Assignment struct {
	Unknown
	// Owner identifies the process. The process draws it when it starts.
	Owner ID `json:"owner"`
	// Until is when the assignment ends, by the store's clock, unless its owner renews it.
	Until time.Time `json:"until"`
}

// Format is the value of the format record.
type Format struct {
	Unknown
	Version int `json:"version"`
}

// FormatRecord returns the first format record of a new store. Its ETag is computed from the
// version rather than drawn, so that nodes that create the store concurrently write the same
// record.
func FormatRecord() Record {
	// A struct of one integer cannot fail to encode.
	value, _ := Encode(Format{Version: FormatFirst})
	return Record{Key: FormatKey(), ETag: ETag{15: FormatFirst}, State: StateNone, Value: value}
}

// Readable returns ErrNewer if this package cannot read records of the layout f.
func (f Format) Readable() error {
	if f.Version > FormatVersion {
		return fmt.Errorf("%w: its records have format %d, this one reads up to %d", ErrNewer, f.Version, FormatVersion)
	}
	return nil
}

// CheckFormat returns ErrNewer if this package cannot read the layout of store's records, or an
// error of the store.
func CheckFormat(ctx context.Context, store Store) error {
	records, err := store.Get(ctx, FormatKey())
	if err != nil {
		return err
	}
	format, err := Decode[Format](records[0])
	if err != nil {
		return err
	}
	return format.Readable()
}

// Decode reads the value of r as a T, and keeps the members for which T has no field. It fails on a
// record that does not exist.
func Decode[T Value](r Record) (T, error) {
	var value T
	if err := decodeInto(r, &value); err != nil {
		return value, err
	}
	rest, err := value.Members().unknownIn(r.Value)
	if rest == nil && err == nil {
		return value, nil
	}
	var plain []byte
	if err == nil {
		plain, err = encode(value)
	}
	if err == nil {
		err = rest.anchor(plain)
	}
	if err != nil {
		return value, fmt.Errorf("decode %s: %w", r.Key, err)
	}
	any(&value).(interface{ keep(rest *unknown) }).keep(rest)
	return value, nil
}

// DecodePart reads the members of r's value for which T, a struct, has a field. Its result must not
// be written back, because it lacks the other members.
func DecodePart[T any](r Record) (T, error) {
	var value T
	err := decodeInto(r, &value)
	return value, err
}

// decodeInto is like DecodePart, but decodes into an existing value, which saves the memory of a
// second one.
func decodeInto[T any](r Record, value *T) error {
	if !r.Exists() {
		return fmt.Errorf("decode %T: no record", *value)
	}
	if err := json.Unmarshal(r.Value, value); err != nil {
		return fmt.Errorf("decode %s as %T: %w", r.Key, *value, err)
	}
	return nil
}
