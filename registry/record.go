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
	// FormatFirst is what a new store begins with, and the oldest version that this package reads.
	FormatFirst = 1
	// FormatVersion is the newest version that this package knows. A store refuses to open a newer
	// one, and a node whose store gets a newer one while it runs ends within seconds. A version
	// never goes down.
	FormatVersion = FormatFirst
)

// ErrNewer says that a store needs a newer version than this one.
var ErrNewer = errors.New("the store needs a newer version of moorage")

// ShardCount is the number of parts of a namespace's registry.
const ShardCount = 16

// Shard returns the part of a namespace's registry that name belongs to.
func Shard(name string) uint8 { return uint8(xxhash.Sum64String(name) & (ShardCount - 1)) }

// State is the part of a record that conditions can ask for without its version.
// The numbers are part of the layout and never change.
type State uint8

// The states, by table.
const (
	StateNone State = 0 // tables without states; a change that happened

	StateLive     State = 1 // warehouse, namespace, pointer
	StateDropping State = 2 // warehouse, namespace: being looked through for children; location: a folder, likewise
	StateDropped  State = 3 // pointer: no entry names it; it can come back
	StatePurging  State = 4 // pointer: its files are being deleted, or were until that was called off; it cannot

	StateTable State = 5 // entry: names a table
	StateView  State = 6 // entry: names a view

	StateOwner State = 7 // location: a table or view lives here
	StateBelow State = 8 // location: some live beneath

	StateVoid State = 9 // change: fenced, its commit can no longer happen

	StatePending   State = 10 // transaction
	StateCommitted State = 11
	StateAborted   State = 12

	StateBlocked State = 13 // task, job: given up, an operator must look

	StateCollecting State = 14 // job: what it will do is being found out
	StateWaiting    State = 15 // job: it goes on at its time
	StateDeleting   State = 16 // job: files are being deleted
	StateClaimed    State = 17 // job: somebody outside the server does it
)

var stateNames = map[State]string{
	StateNone: "none", StateLive: "live", StateDropping: "dropping", StateDropped: "dropped", StatePurging: "purging",
	StateTable: "table", StateView: "view", StateOwner: "owner", StateBelow: "below", StateVoid: "void",
	StatePending: "pending", StateCommitted: "committed", StateAborted: "aborted", StateBlocked: "blocked",
	StateCollecting: "collecting", StateWaiting: "waiting", StateDeleting: "deleting", StateClaimed: "claimed",
}

// IsDropped reports whether a pointer in state s is that of a dropped table or view, or of one that
// is being purged.
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
	// Location is the URI below which tables are made; no trailing slash.
	Location string `json:"location"`
	// AllowedLocations are further URIs below which tables may live.
	AllowedLocations []string `json:"allowed-locations,omitempty"`
	// Storage says how its storage is reached, as storage.Place.Options does. No secrets.
	Storage    map[string]string `json:"storage,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	// Delegation says how engines reach its files without a key of their own, the preferred way
	// first. Empty: not at all.
	Delegation []string `json:"delegation,omitempty"`
	// Secret is what its storage is reached with besides Storage; zero: what the process has.
	Secret SecretRef `json:"secret,omitzero"`
	// Since is when the present state began: StateDropping by the store's clock, or by the node's
	// if an older version wrote it; others by the node's.
	Since time.Time `json:"since"`
	// Creator is the identity of who made it, its owner unless its grants record names another. It
	// is written at birth and never changes. Empty if an older version made it.
	Creator string `json:"creator,omitempty"`
	// Granted says that it may have a grants record.
	Granted bool `json:"granted,omitempty"`
}

// Trim is the metadata files that one commit deletes after its Apply.
type Trim struct {
	ID ID `json:"id"` // drawn for each
	// Node is drawn by a process when it starts: the one that deletes them.
	Node ID `json:"node"`
	// At is when the commit was planned, by the node's clock.
	At time.Time `json:"at"`
	// Folder is where the files are, and Files are their names in it.
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
}

// TrimFence is for how long no register takes a file that a commit is about to delete.
const TrimFence = time.Minute

// IsFenced reports whether t is so young that its files may be about to be deleted. Nodes differ a
// little in their clocks.
func (t Trim) IsFenced(now time.Time) bool { return now.Sub(t.At).Abs() < TrimFence }

// FencedTrims returns those of trims that are fenced.
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
	// Since is when the present state began: StateDropping by the store's clock, or by the node's
	// if an older version wrote it; others by the node's.
	Since time.Time `json:"since"`
	// Creator and Granted are as those of Warehouse.
	Creator string `json:"creator,omitempty"`
	Granted bool   `json:"granted,omitempty"`
}

// Entry is the value of an entry record: a name in a namespace. Its record's state says
// whether it names a table or a view.
type Entry struct {
	Unknown
	Pointer ID    `json:"pointer"`
	Shard   uint8 `json:"shard"`
	// Creator is that of the pointer, so that a list can tell what somebody owns.
	Creator string `json:"creator,omitempty"`
}

// Pointer is the value of a pointer record: one table or view, and which metadata
// file is its current one.
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
	// catalog wrote that file. The owner of a registered file may write it again and register it
	// again.
	Registration ID `json:"registration,omitzero"`
	// Claims are the normalised locations that it has claimed, its present one last.
	Claims []string `json:"claims"`
	// Since is when the present state began. If a purge was called off, that is when it was. The
	// time of a dropped state is by the store's clock, or by the node's if an older version wrote
	// it. Other times are by the node's clock.
	Since time.Time `json:"since"`
	// Task is the purge that the drop asked for, zero if none, or if it was called off.
	Task ID `json:"task,omitzero"`
	// PurgeDelay is how long after Since that purge waits, so that the table can come back. Zero:
	// it may begin at once, or has begun. While it waits it has a record of WaitingKey, no task.
	PurgeDelay time.Duration `json:"purge-delay-ns,omitempty"`
	// Storage is the storage of the warehouse. The drop keeps it, because the warehouse may be gone
	// before the files are.
	Storage map[string]string `json:"storage,omitempty"`
	// WarehouseID is kept by the drop too: another warehouse may get the name. Zero if the table is
	// live, or an older version dropped it.
	WarehouseID ID `json:"warehouse-id,omitzero"`
	// Secret is the id of the secret of the warehouse, which the drop keeps likewise; zero: it has
	// none.
	Secret ID `json:"secret,omitzero"`
	// ReplayableUntil is until when a version of the table may have to be answered again, zero if
	// none may: a purge waits for it.
	ReplayableUntil time.Time `json:"replayable-until,omitzero"`
	// ReachableUntil is until when engines may hold credentials for the locations of a dropped
	// table, by the store's clock; zero if its warehouse gives none. Nobody else can claim them
	// before.
	ReachableUntil time.Time `json:"reachable-until,omitzero"`
	// Trims are the metadata files that commits take out of the log and then delete. Each stands
	// here until it is known to be gone, or for a minute. Meanwhile no register takes the file.
	Trims []Trim `json:"trims,omitempty"`
	// Creator and Granted are as those of Warehouse. The Apply that moves or ends a pointer that is
	// granted writes its grants record too.
	Creator string `json:"creator,omitempty"`
	Granted bool   `json:"granted,omitempty"`
}

// Identifier returns what the table or view is, or was last, called.
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
	// Adopted is when an operator consented that orphan removal deletes older files too, and
	// AdoptedBy is the operator. It is zero without that consent.
	Adopted   time.Time `json:"adopted,omitzero"`
	AdoptedBy string    `json:"adopted-by,omitempty"`
}

// Keeps reports whether orphan removal must keep a file of the location that was written at this
// time: the file is older than the claim, and no operator consented to its removal.
func (c LocationClaim) Keeps(written time.Time) bool {
	return c.Adopted.IsZero() && written.Before(c.Since)
}

// The ways in which the claim of a location ended.
const (
	EndedPurge      = "purge"      // the server deleted the files
	EndedUnregister = "unregister" // the table left the catalog with its files
	EndedWindow     = "window"     // the undrop window ended, and the files stay
	EndedForget     = "forget"     // a purge that had begun was called off, and some files may be left
	EndedTakeover   = "takeover"   // another table or view took the location of the dropped one
)

// Tombstone is the value of a tombstone record: a table or view lived at the location of its key,
// and may have left files there. The table may be live in another catalog.
type Tombstone struct {
	Unknown
	Pointer     ID                 `json:"pointer"`
	Table       moorage.Identifier `json:"table"`      // what it was called last
	TableUUID   string             `json:"table-uuid"` // of a view, its view-uuid
	WarehouseID ID                 `json:"warehouse-id,omitzero"`
	// Ended is until when it lived there, by the store's clock, and How is one of EndedPurge and
	// its siblings.
	Ended time.Time `json:"ended"`
	How   string    `json:"how"`
	// Lasting says that the tombstone stays until an operator clears it. Any other one ends with
	// ReachableUntil.
	Lasting bool `json:"lasting,omitempty"`
	// ReachableUntil is until when engines may hold credentials for the location, by the store's
	// clock. Until then only the table of TableUUID can claim it. It is zero if they hold none.
	ReachableUntil time.Time `json:"reachable-until,omitzero"`
	// MetadataLocation and Trims are those of the pointer when it ended. A register that brings the
	// table back heeds them, and its pointer takes Trims over.
	MetadataLocation string `json:"metadata-location,omitempty"`
	Trims            []Trim `json:"trims,omitempty"`
}

// Version is what a change did to one record. A zero ETag means that there was no record, or is
// none. Old is also zero if the batch did not ask for a version.
type Version struct {
	Key Key  `json:"key"`
	Old ETag `json:"old,omitzero"`
	New ETag `json:"new,omitzero"`
}

// Change is the value of a change record: what one Apply did. Its state is StateNone, or
// StateVoid if the commit was fenced before it happened.
type Change struct {
	Unknown
	ID        ID                 `json:"id"` // the commit id
	Operation string             `json:"operation"`
	Ident     moorage.Identifier `json:"identifier"` // Name is empty for a namespace
	Principal string             `json:"principal"`
	RequestID string             `json:"request-id,omitempty"`
	Client    string             `json:"client,omitempty"` // User-Agent of the request, 200 bytes at most
	Time      time.Time          `json:"time"`
	// MetadataLocation is the new one of a change of one table that an older version wrote. Items
	// say it now.
	MetadataLocation string `json:"metadata-location,omitempty"`
	// Group are the requests that the change carried out together, in their order; nil if it was
	// one.
	Group []Member `json:"members,omitempty"`
	// Items are the objects that the change was about. A record of an older version has none.
	Items []Item `json:"items,omitempty"`
	// Versions are the records written, in the order of the batch; Apply fills it.
	Versions []Version `json:"versions,omitempty"`
}

// Member is one of several requests that one change carried out.
type Member struct {
	Operation string    `json:"operation"`
	Principal string    `json:"principal"`
	RequestID string    `json:"request-id,omitempty"`
	Client    string    `json:"client,omitempty"`
	Time      time.Time `json:"time"`               // when the request came
	Snapshot  int64     `json:"snapshot,omitempty"` // that it added; zero for none
}

// Task is the value of a task record: work that a past operation left for a worker, or for an
// operator.
type Task struct {
	Unknown
	ID        ID        `json:"id"`
	Kind      string    `json:"kind"`    // TaskPurge or TaskRecovery
	Pointer   ID        `json:"pointer"` // whose files a purge deletes; zero for a recovery
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"not-before,omitzero"` // when it may be begun; zero: at once
	Attempts  int       `json:"attempts,omitempty"`
	LastError string    `json:"last-error,omitempty"`
	// Begun is how many attempts have begun since one came to an end, whatever that was. The
	// processes of the others died, perhaps of the work itself.
	Begun int `json:"begun,omitempty"`
}

// AsOf returns t as it is to be read at now, by the store's clock. If that was ahead when t was
// made, moved is true, and the whole wait begins now.
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

// aheadMax is how far ahead of the store's clock a time may be that was the present when a node
// wrote it.
const aheadMax = time.Minute

// IsAhead reports whether written, the time at which a record was written, is ahead of now, a time
// of the store's clock. Then one of both was wrong, and what was to happen so long after written
// must not wait for that.
func IsAhead(written, now time.Time) bool { return written.After(now.Add(aheadMax)) }

// BegunMax is how many attempts of a task or tries of a job in a row may end with the death of
// their process. After that an operator decides: to go on might end the next process too.
const BegunMax = 5

// The kinds of tasks.
const (
	// TaskPurge deletes a dropped table's files.
	TaskPurge = "purge"
	// TaskRecovery has the id of a transaction whose recovery was given up; its state is
	// StateBlocked.
	TaskRecovery = "recovery"
)

// DecodeTask reads the record of a task. A kind or a state that no task has, and an id that is
// another's, are as bad as a damaged value. The error names the record's key.
func DecodeTask(record Record) (Task, error) {
	task, err := Decode[Task](record)
	switch {
	case err != nil:
	case TaskKey(task.ID) != record.Key:
		err = fmt.Errorf("%s holds the task %s", record.Key, task.ID)
	case task.Kind != TaskPurge && task.Kind != TaskRecovery:
		err = fmt.Errorf("%s is of the kind %q, which is not known", record.Key, task.Kind)
	case record.State != StateNone && record.State != StateBlocked:
		err = fmt.Errorf("%s is %s, which no task can be", record.Key, record.State)
	}
	return task, err
}

// Claim is the value of a claim record. One process does a piece of work, which the record's key
// names, and the others leave the work alone until the claim ends. A claim saves work and protects
// nothing. Change records do not name claims.
type Claim struct {
	Unknown
	// Owner is drawn by a process when it starts.
	Owner ID `json:"owner"`
	// Until is when the claim ends unless its owner renews it, by the store's clock.
	Until time.Time `json:"until"`
}

// Format is the value of the format record.
type Format struct {
	Unknown
	Version int `json:"version"`
}

// FormatRecord returns the record that a new store begins with. The ETag of this version is made of
// it and not drawn, so that stores that begin at the same time agree.
func FormatRecord() Record {
	// A struct of one integer cannot fail to encode.
	value, _ := Encode(Format{Version: FormatFirst})
	return Record{Key: FormatKey(), ETag: ETag{15: FormatFirst}, State: StateNone, Value: value}
}

// Readable returns ErrNewer if this package does not read records of the layout f.
func (f Format) Readable() error {
	if f.Version > FormatVersion {
		return fmt.Errorf("%w: its records have format %d, this one reads up to %d", ErrNewer, f.Version, FormatVersion)
	}
	return nil
}

// CheckFormat returns ErrNewer if the records of store have a layout that this package
// does not read, or an error of the store.
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

// Decode reads the value of r as a T, with the members that a T has no field for. It fails on a
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

// DecodePart reads those members of the value of r that T, a struct, has a field for. Its result
// cannot be written back.
func DecodePart[T any](r Record) (T, error) {
	var value T
	err := decodeInto(r, &value)
	return value, err
}

// decodeInto is DecodePart into value: a second value would cost memory.
func decodeInto[T any](r Record, value *T) error {
	if !r.Exists() {
		return fmt.Errorf("decode %T: no record", *value)
	}
	if err := json.Unmarshal(r.Value, value); err != nil {
		return fmt.Errorf("decode %s as %T: %w", r.Key, *value, err)
	}
	return nil
}
