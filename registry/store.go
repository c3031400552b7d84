package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"
)

// Bounds that every store enforces and may rely on.
const (
	// KeyBytesMax is the maximum length of Key.ID. An index of PostgreSQL takes rows of up to 2,704
	// bytes.
	KeyBytesMax = 2560
	// BatchItemsMax is the largest number of conditions, and of writes, in one batch.
	BatchItemsMax = 4096
	// ValueBytesMax is the maximum length of a value. Package catalog refuses requests that would
	// need a longer one.
	ValueBytesMax = 64 << 20
	// BatchBytesMax bounds the total length of the values of one batch. The wire protocol of
	// PostgreSQL takes messages of up to 1 GiB, and the engine of the embedded store does not
	// survive a batch of 4 GiB.
	BatchBytesMax = 8 * ValueBytesMax
	// ListLimitMax is the maximum length of a page of List or Changes.
	ListLimitMax = 10_000
	// ListBytesMax bounds the values of a page of List. A few thousand typical records fit, and a
	// node can hold many such pages at a time.
	ListBytesMax = 8 << 20
)

// ETag is the version of a record: 128 random bits, drawn by each write. The zero ETag belongs to
// no record.
type ETag [16]byte

// IsZero reports whether e belongs to no record.
func (e ETag) IsZero() bool { return e == ETag{} }

// String returns e as 32 lower-case hexadecimal digits.
func (e ETag) String() string { return hex.EncodeToString(e[:]) }

// MarshalText returns the text of String.
func (e ETag) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the text of String.
func (e *ETag) UnmarshalText(text []byte) error {
	return unmarshalHex(e[:], text)
}

// NewETag draws an ETag from random.
func NewETag(random io.Reader) (ETag, error) {
	var e ETag
	err := e.draw(random)
	return e, err
}

// draw sets e to an ETag from random, or to zero if that fails.
func (e *ETag) draw(random io.Reader) error {
	for *e = (ETag{}); e.IsZero(); {
		if _, err := io.ReadFull(random, e[:]); err != nil {
			*e = ETag{}
			return fmt.Errorf("draw etag: %w", err)
		}
	}
	return nil
}

// Record is one versioned value. The zero Record means that there is no record.
type Record struct {
	Key   Key
	ETag  ETag
	State State
	Value []byte // read-only if it came from a store
}

// Exists reports whether the record was found.
func (r Record) Exists() bool { return !r.ETag.IsZero() }

// ConditionKind is the kind of requirement of a Condition on a record.
type ConditionKind uint8

// The kinds of conditions. There is no condition on a range of keys.
const (
	CondAbsent  ConditionKind = iota + 1 // there is no record
	CondETagIs                           // the record's version is Condition.ETag
	CondStateIs                          // there is a record and its state is Condition.State
)

// Condition is a requirement that must hold for a batch to be applied.
type Condition struct {
	Kind  ConditionKind
	Key   Key
	ETag  ETag  // CondETagIs
	State State // CondStateIs
}

// Absent holds if there is no record at key. It is allowed only for a key that the same batch puts,
// because some databases cannot lock a missing row.
func Absent(key Key) Condition { return Condition{Kind: CondAbsent, Key: key} }

// ETagIs holds if the record at key has the version etag.
func ETagIs(key Key, etag ETag) Condition {
	return Condition{Kind: CondETagIs, Key: key, ETag: etag}
}

// StateIs holds if there is a record at key with this state.
func StateIs(key Key, state State) Condition {
	return Condition{Kind: CondStateIs, Key: key, State: state}
}

// Met reports whether c holds for the record r found at c.Key.
func (c Condition) Met(r Record) bool {
	switch c.Kind {
	case CondAbsent:
		return !r.Exists()
	case CondETagIs:
		return r.Exists() && r.ETag == c.ETag
	case CondStateIs:
		return r.Exists() && r.State == c.State
	}
	return false
}

// String describes the condition for messages.
func (c Condition) String() string {
	switch c.Kind {
	case CondAbsent:
		return fmt.Sprintf("absent(%s)", c.Key)
	case CondETagIs:
		return fmt.Sprintf("etag(%s) = %s", c.Key, c.ETag)
	case CondStateIs:
		return fmt.Sprintf("state(%s) = %s", c.Key, c.State)
	}
	return fmt.Sprintf("condition %d on %s", c.Kind, c.Key)
}

// Write puts or deletes one record.
type Write struct {
	Key    Key
	State  State
	Value  []byte
	Delete bool // State and Value are ignored
	// Was is the record that the write replaces or deletes, as its writer read it. It is zero if
	// there was no record, or if the write does not depend on the present record. It is a field of
	// the write and not of its condition, because conditions are compared by ==.
	Was Record
	// Life is the time from the write of an outcome (a record of TableIdempotency) to its expiry,
	// by the store's clock. Stores use it to find expired outcomes. It is not part of the record.
	// Zero means unknown.
	Life time.Duration
}

// Put writes value and state at key, whether or not there is a record.
func Put(key Key, state State, value []byte) Write {
	return Write{Key: key, State: state, Value: value}
}

// Delete removes the record at key. A missing record is not an error.
func Delete(key Key) Write { return Write{Key: key, Delete: true} }

// Over returns w as the write that replaces or deletes was, as it was read.
func (w Write) Over(was Record) Write {
	w.Was = was
	return w
}

// Batch is the set of writes and conditions that Apply applies at one moment. Each key is written
// at most once.
type Batch struct {
	Conditions []Condition
	Writes     []Write

	// Change, if not nil, is written as the record ChangeKey(Change.ID), on condition that this
	// record is absent. The change then has a place in the order of Changes.
	Change *Change
}

// Position is a place in the order of changes. Zero is before the first change.
type Position uint64

// PositionedChange is a change and the position directly after it.
type PositionedChange struct {
	Position Position
	Change   Change
	// Unreadable explains why the change's record cannot be read: it is damaged, or of a later
	// version. In that case only the ID of the change is known. The ID is zero if the record's key
	// is not an ID. Unreadable is nil for a readable record.
	Unreadable error
}

// PlacedChange returns the change in a record. Only stores call it. A record counts as damaged if
// its key is not the id of the change in its value. A reader that trusted the value would delete
// the record of another change.
func PlacedChange(position Position, record Record) PositionedChange {
	var id ID
	if err := id.UnmarshalText([]byte(record.Key.ID)); err != nil {
		return PositionedChange{Position: position, Unreadable: fmt.Errorf("the key %s holds no id", record.Key)}
	}
	change, err := DecodeChange(record)
	if err == nil && change.ID != id {
		err = fmt.Errorf("%s holds the change %s", record.Key, change.ID)
	}
	if err != nil {
		return PositionedChange{Position: position, Change: Change{ID: id}, Unreadable: err}
	}
	return PositionedChange{Position: position, Change: change}
}

// Store keeps the records. All methods are safe for concurrent use and return when ctx ends. They
// return the context's error if nothing was changed. If an Apply may still happen, its error is
// both ErrUnknown and the context's.
//
// Every store holds the record FormatKey from its first moment. Any error not listed here means
// that the store could not be reached, and that nothing was changed.
type Store interface {
	Clock

	// Get returns the records of keys, in their order, in one round trip and as of one moment. A
	// missing key yields a zero Record. The caller may read but not write the values, and later
	// calls do not change them.
	Get(ctx context.Context, keys ...Key) ([]Record, error)

	// List returns the records of table whose ID starts with prefix, in byte order of their IDs and
	// as of one moment. It begins after the ID after (exclusive), or at the start if after is
	// empty. It returns at most limit records (1 to ListLimitMax). The page ends with the record at
	// which its values reach ListBytesMax. IsLastPage reports whether a page is the last.
	List(ctx context.Context, table Table, prefix, after string, limit int) ([]Record, error)

	// ListKeys is like List, but does not read the values. A page shorter than limit is the last.
	ListKeys(ctx context.Context, table Table, prefix, after string, limit int) ([]Record, error)

	// Apply makes all writes durable and visible at one moment if every condition holds. It returns
	// the new ETags in the order of batch.Writes (zero for a delete). On success, all records seen
	// by its conditions are durable, even if the batch writes nothing. This also holds for a store
	// whose Get and List can show writes that a standby does not have yet.
	//
	// If a condition does not hold, Apply changes nothing. It returns a *FailedError with the first
	// such condition in the order of batch.Conditions. The condition of batch.Change comes last.
	// After ErrUnknown the batch may have been applied, or may be applied later. After ErrFailed or
	// ErrUnavailable it was not and will not be. ErrBadBatch means that the batch breaks a rule of
	// this package (see Batch.Check).
	//
	// The caller may reuse the batch when Apply returns, except the values of its writes. The store
	// may keep the values, so they must not be modified.
	Apply(ctx context.Context, batch Batch) ([]ETag, error)

	// Changes returns at most limit (1 to ListLimitMax) changes that follow the position after,
	// oldest first. The changes of a key are in the order of its versions, and an Apply comes after
	// every Apply whose writes it saw. Positions only grow and are never used twice, but may have
	// gaps. A later write or delete of a change's record removes the change from this order. Only
	// records written by Batch.Change are in it. An unreadable record keeps its place (see
	// PositionedChange).
	Changes(ctx context.Context, after Position, limit int) ([]PositionedChange, error)

	// Close ends the store. Calls in progress end first. Later calls return ErrClosed, but Close
	// may be called again.
	Close() error
}

// Clock is the clock of a store. All nodes that share the store use it to decide what is due or
// expired, because their own clocks may differ.
type Clock interface {
	// Time returns the time by the store's clock. Compare it with other times of this clock only.
	// Like any clock it may be set, so a later call may return an earlier time. It returns the
	// errors of Store.Get.
	Time(ctx context.Context) (time.Time, error)
}

// Wrapper is implemented by stores that delegate to another store, which may implement more than
// Store.
type Wrapper interface {
	// Unwrap returns the store behind this one.
	Unwrap() Store
}

// Find returns the first T among store and the stores that it wraps. T is an interface that some
// stores implement in addition to Store.
func Find[T any](store Store) (found T, ok bool) {
	for store != nil {
		if found, ok = store.(T); ok {
			return found, true
		}
		wrapper, wraps := store.(Wrapper)
		if !wraps {
			break
		}
		store = wrapper.Unwrap()
	}
	return found, false
}

// Numberer is implemented by stores whose changes get their places some time after they became
// visible. Changes gives places to changes that have none, so calling Number is optional. It saves
// readers that work.
type Numberer interface {
	// Number gives places to a bounded number of the oldest changes without one. It does so only if
	// the first of them has waited for at least the duration waited, by the store's clock. It
	// reports whether more changes may be without a place. Any number of processes may call it
	// concurrently: one of them does the work. It returns the errors of Store.Get. After an error
	// the effect is unknown, and the caller may call it again.
	Number(ctx context.Context, waited time.Duration) (more bool, err error)
}

// Expirer is implemented by stores that find expired outcomes without reading other outcomes.
type Expirer interface {
	// Expired returns at most limit outcomes (records of TableIdempotency), without their values,
	// that expire before a time by their Write.Life, earliest first. It returns the errors of
	// Store.List.
	Expired(ctx context.Context, before time.Time, limit int) ([]Record, error)
	// Undated is like Store.List, for the outcomes that were written without Write.Life.
	Undated(ctx context.Context, after string, limit int) ([]Record, error)
}

// HealthChecker is implemented by stores that can fail permanently or lose their server.
type HealthChecker interface {
	// Healthy returns nil if the store accepts writes, and otherwise the reason.
	Healthy(ctx context.Context) error
}

// Errors that a Store returns. Callers distinguish them with errors.Is.
var (
	// ErrUnknown: the outcome of an Apply is not known, and the Apply may still happen.
	ErrUnknown = errors.New("registry: outcome unknown")
	// ErrFailed: the store met an error from which it cannot recover, and refuses writes.
	ErrFailed = errors.New("registry: store has failed")
	// ErrUnavailable: the store cannot be reached now; nothing was or will be applied.
	ErrUnavailable = errors.New("registry: store unavailable")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("registry: store is closed")
	// ErrBadBatch: a batch or call breaks a rule of the contract, which is a fault of the caller's
	// code.
	ErrBadBatch = errors.New("registry: malformed call")
)

// FailedError means that a batch was not applied because a condition did not hold.
type FailedError struct {
	Index     int // index in batch.Conditions; len(batch.Conditions) stands for the condition of batch.Change
	Condition Condition
}

// Error names the condition.
func (e *FailedError) Error() string { return "registry: condition failed: " + e.Condition.String() }

// FailedCondition returns the condition in err, if there is one.
func FailedCondition(err error) (Condition, bool) {
	var failed *FailedError
	if errors.As(err, &failed) {
		return failed.Condition, true
	}
	return Condition{}, false
}

// Check returns ErrBadBatch if b breaks a rule. The rules forbid a key that is written twice or is
// too long, a value that is too long, and values that are too long in total. They forbid a write of
// the format record with a version outside FormatFirst to FormatVersion. They forbid Absent on a
// key that is not put, too many items, an unknown table or condition, and a Change without an ID.
// The IDs of records that a Change can name (warehouse, namespace, entry, pointer, access policy)
// must be UTF-8. Every store calls Check first.
//
// In a batch with a Change, each write of a warehouse, namespace, entry or pointer must replace
// exactly the version that its writer read. So the batch must require the ETag of Write.Was, or
// that the record is absent if Was is zero. The versions in the change depend on it (see Version).
func (b Batch) Check() error {
	if len(b.Conditions) > BatchItemsMax || len(b.Writes) > BatchItemsMax {
		return fmt.Errorf("%w: %d conditions and %d writes, at most %d each", ErrBadBatch, len(b.Conditions),
			len(b.Writes), BatchItemsMax)
	}
	writes := make(map[Key]int, len(b.Writes)) // indexes
	bytes := 0
	for i, w := range b.Writes {
		if err := w.check(); err != nil {
			return err
		}
		if bytes += len(w.Value); bytes > BatchBytesMax {
			return fmt.Errorf("%w: the values of a batch have more than %d bytes", ErrBadBatch, BatchBytesMax)
		}
		if _, twice := writes[w.Key]; twice {
			return fmt.Errorf("%w: %s is written twice", ErrBadBatch, w.Key)
		}
		writes[w.Key] = i
	}
	exact := make([]bool, len(b.Writes)) // the write replaces what its writer read
	for _, c := range b.Conditions {
		if err := c.check(); err != nil {
			return err
		}
		at, written := writes[c.Key]
		if c.Kind == CondAbsent && (!written || b.Writes[at].Delete) {
			return fmt.Errorf("%w: %s on a key that the batch does not put", ErrBadBatch, c)
		}
		if !written {
			continue
		}
		was := b.Writes[at].Was
		if c.Kind == CondAbsent && !was.Exists() || c.Kind == CondETagIs && was.Exists() && was.ETag == c.ETag {
			exact[at] = true
		}
	}
	if b.Change == nil {
		return nil
	}
	if b.Change.ID.IsZero() {
		return fmt.Errorf("%w: a change without an id", ErrBadBatch)
	}
	if _, twice := writes[ChangeKey(b.Change.ID)]; twice {
		return fmt.Errorf("%w: %s is written twice", ErrBadBatch, ChangeKey(b.Change.ID))
	}
	for i, w := range b.Writes {
		if w.Key.Table.keepsBefore() && (!exact[i] || w.Was.Exists() && w.Was.Key != w.Key) {
			return fmt.Errorf("%w: the change %s writes %s, and the batch does not require the replaced version",
				ErrBadBatch, b.Change.Operation, w.Key)
		}
	}
	return nil
}

func (w Write) check() error {
	if err := w.Key.check(); err != nil {
		return err
	}
	if w.Key.Table == TableFormat {
		if err := w.checkFormat(); err != nil {
			return err
		}
	}
	if w.Key.Table.logged() && !utf8.ValidString(w.Key.ID) {
		return fmt.Errorf("%w: %s is not UTF-8, and changes name it", ErrBadBatch, w.Key)
	}
	if !w.Delete && len(w.Value) > ValueBytesMax {
		return fmt.Errorf("%w: %s has a value of %d bytes, at most %d are allowed", ErrBadBatch, w.Key, len(w.Value),
			ValueBytesMax)
	}
	return nil
}

// checkFormat returns ErrBadBatch unless w, a write of the format record, sets a version known to
// this package.
func (w Write) checkFormat() error {
	record := Record{Key: w.Key, ETag: ETag{15: FormatVersion}, Value: w.Value}
	format, err := Decode[Format](record)
	known := err == nil && format.Version >= FormatFirst && format.Version <= FormatVersion
	if w.Delete || w.Key != FormatKey() || !known {
		return fmt.Errorf("%w: %s must be that of a format from %d to %d", ErrBadBatch, w.Key, FormatFirst,
			FormatVersion)
	}
	return nil
}

func (c Condition) check() error {
	switch c.Kind {
	case CondAbsent, CondETagIs, CondStateIs:
		return c.Key.check()
	}
	return fmt.Errorf("%w: %s", ErrBadBatch, c)
}

// NewETags draws the ETags of b's writes, in their order, with zero for each delete. If b.Change is
// set, one more ETag follows for its record. So each write of the sealed batch has an ETag.
func (b Batch) NewETags(random io.Reader) ([]ETag, error) {
	etags := make([]ETag, len(b.Writes), len(b.Writes)+1)
	if b.Change != nil {
		etags = etags[:len(b.Writes)+1]
	}
	for i := range etags {
		if i < len(b.Writes) && b.Writes[i].Delete {
			continue
		}
		if err := etags[i].draw(random); err != nil {
			return nil, err
		}
	}
	return etags, nil
}

// Seal returns b in the form that stores apply: its Change, if there is one, becomes a condition
// and a write. etags come from NewETags. The etags, and the replaced records in b's writes, become
// the versions in the change.
func (b Batch) Seal(etags []ETag) (Batch, error) {
	if b.Change == nil {
		return b, nil
	}
	change := *b.Change
	change.Versions = make([]Version, 0, len(b.Writes))
	for i, w := range b.Writes {
		switch {
		case w.Key.Table.keepsBefore():
			version := Version{Key: w.Key, Old: w.Was.ETag, New: etags[i], Before: w.replaced()}
			change.Versions = append(change.Versions, version)
		case w.Key.Table.logged():
			change.Versions = append(change.Versions, Version{Key: w.Key, Old: b.requiredETag(w.Key), New: etags[i]})
		}
	}
	change.Items = change.withoutLocations()
	value, err := change.Encode()
	if err != nil {
		return Batch{}, err
	}
	key := ChangeKey(change.ID)
	sealed := Batch{
		Conditions: slices.Concat(b.Conditions, []Condition{Absent(key)}),
		Writes:     slices.Concat(b.Writes, []Write{Put(key, StateNone, value)}),
		Change:     &change,
	}
	return sealed, nil
}

// requiredETag returns the version of key required by b, or zero if there is no such condition.
func (b Batch) requiredETag(key Key) ETag {
	for _, c := range b.Conditions {
		if c.Kind == CondETagIs && c.Key == key {
			return c.ETag
		}
	}
	return ETag{}
}
