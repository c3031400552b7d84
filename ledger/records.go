package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage"
	"moorage/registry"
)

// ScanPage is the number of records that a scan reads at a time.
const ScanPage = 1000

// Get reads several records, all as of the same moment. If the store fails, the error is
// KindUnavailable.
func (l *Ledger) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := l.store.Get(ctx, keys...)
	if err != nil {
		return nil, StoreError("ledger.Get", err)
	}
	return records, nil
}

// Time returns the time by the store's clock, which all nodes share. Use it for times that one node
// writes and another compares, because the nodes' clocks may differ.
func (l *Ledger) Time(ctx context.Context) (time.Time, error) {
	now, err := l.store.Time(ctx)
	if err != nil {
		return time.Time{}, StoreError("ledger.Time", err)
	}
	return now, nil
}

// List returns a page of at most limit records of table whose IDs start with prefix, in byte order
// of their IDs. It begins after the ID after.
func (l *Ledger) List(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	records, err := l.store.List(ctx, table, prefix, after, limit)
	return records, StoreError("ledger.List", err)
}

// ListKeys is like List, but returns the records without their values.
func (l *Ledger) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	records, err := l.store.ListKeys(ctx, table, prefix, after, limit)
	return records, StoreError("ledger.ListKeys", err)
}

// Visit is called for each record of a scan. The scan ends when it returns false or an error.
type Visit func(registry.Record) (more bool, err error)

// Scan calls visit for the records of table whose IDs start with prefix, in byte order of their
// IDs, until visit returns false or an error. It begins after the ID after.
func (l *Ledger) Scan(ctx context.Context, table registry.Table, prefix, after string,
	visit Visit) error {
	return scanPages(ctx, l.List, table, prefix, after, ScanPage, visit)
}

// ScanKeys is like Scan, but without values. The parameter first is the number of records on the
// first page. Set it to the number that is usually needed. Further pages are longer.
func (l *Ledger) ScanKeys(ctx context.Context, table registry.Table, prefix, after string,
	first int, visit Visit) error {
	return scanPages(ctx, l.ListKeys, table, prefix, after, first, visit)
}

// lister is one of the two lists of a registry.Store.
type lister func(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error)

func scanPages(ctx context.Context, list lister, table registry.Table, prefix, after string,
	first int, visit Visit) error {
	for page := first; ; page = ScanPage {
		records, err := list(ctx, table, prefix, after, page)
		if err != nil {
			return err
		}
		for _, record := range records {
			if more, err := visit(record); err != nil || !more {
				return err
			}
		}
		if registry.IsLastPage(records, page) {
			return nil
		}
		after = records[len(records)-1].Key.ID
	}
}

// Decode reads the value of an existing record. An unreadable value is a fault of the store, so its
// error is KindInternal.
func Decode[T registry.Value](record registry.Record) (T, error) {
	value, err := registry.Decode[T](record)
	return value, Undecoded(record, err)
}

// undecoded is the failure to decode a record.
type undecoded struct{ error }

func (u undecoded) Unwrap() error { return u.error }

// Undecoded adds a kind to err, the failure to decode record. Nil stays nil.
func Undecoded(record registry.Record, err error) error {
	if err == nil {
		return nil
	}
	return moorage.E("ledger.Undecoded", record.Key.String(), moorage.KindInternal, undecoded{err})
}

// IsUndecoded reports whether err means that a record cannot be decoded, because it is damaged or
// of a later version.
func IsUndecoded(err error) bool {
	_, is := errors.AsType[undecoded](err)
	return is
}

// UnknownOf returns the members of record's value for which T has no field in this version. A new
// value must keep these members. They are empty if the record is missing or unreadable.
func UnknownOf[T registry.Value](record registry.Record) registry.Unknown {
	value, err := registry.Decode[T](record)
	if err != nil {
		return registry.Unknown{}
	}
	return value.Later()
}

// Unchanged returns the condition that record has not changed.
func Unchanged(record registry.Record) registry.Condition {
	return registry.ETagIs(record.Key, record.ETag)
}

// AsRead returns the condition that the record at key has not changed since it was read as record.
// If the record did not exist, the condition is that it is still absent.
func AsRead(record registry.Record, key registry.Key) registry.Condition {
	if record.Exists() {
		return Unchanged(record)
	}
	return registry.Absent(key)
}

// Write is a write whose value is not encoded yet.
type Write struct {
	Key   registry.Key
	State registry.State
	Value registry.Value
	// Was is the record that the write replaces; see registry.Write.
	Was registry.Record
}

// Put returns the write that gives the record at key a state and a value, whatever its present
// content is. If the table's replaced values are stored in changes, there must be no record yet.
func Put(key registry.Key, state registry.State, value registry.Value) Write {
	return Write{Key: key, State: state, Value: value}
}

// Replace returns the write that gives record, as it was read, another state and value. The Apply
// must require that record is unchanged.
func Replace(record registry.Record, state registry.State, value registry.Value) Write {
	return Put(record.Key, state, value).Over(record)
}

// Over returns w in the form of a write that replaces record, as it was read. record may be
// missing.
func (w Write) Over(record registry.Record) Write {
	w.Was = record
	return w
}

// Delete returns the write that deletes record, as it was read. The Apply must require that record
// is unchanged.
func Delete(record registry.Record) registry.Write {
	return registry.Delete(record.Key).Over(record)
}

// Encode returns the writes for puts. If a value is too long for any store, the error is
// KindTooLarge, because only a client's request can cause that.
func Encode(puts ...Write) ([]registry.Write, error) {
	writes := make([]registry.Write, 0, len(puts))
	for _, p := range puts {
		value, err := registry.Encode(p.Value)
		if err != nil {
			return nil, moorage.E("ledger.Encode", p.Key.String(), moorage.KindInternal, err)
		}
		if len(value) > registry.ValueBytesMax {
			return nil, moorage.Errorf(moorage.KindTooLarge,
				"The %s record would have %d bytes, at most %d can be stored",
				p.Key.Table, len(value), registry.ValueBytesMax)
		}
		writes = append(writes, registry.Put(p.Key, p.State, value).Over(p.Was))
	}
	return writes, nil
}

// StoreError adds a kind to the failure of a read, or of a batch that certainly was not applied.
// Nil stays nil.
func StoreError(op string, err error) error {
	if errors.Is(err, registry.ErrBadBatch) {
		return moorage.E(op, "", moorage.KindInternal, err)
	}
	return moorage.E(op, "", moorage.KindUnavailable, err)
}

// StepError adds a kind to the failure of a repeatable step. Nil stays nil.
func StepError(op string, err error) error {
	if errors.Is(err, registry.ErrUnknown) {
		return moorage.E(op, "", moorage.KindCommitUnknown, fmt.Errorf("the store did not answer: %w", err))
	}
	return StoreError(op, err)
}
