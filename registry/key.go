package registry

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Table is the kind of a record. A relational store keeps one table for each kind. The numbers are
// part of the layout and never change.
type Table uint8

// The tables. Each comment has the parts of a key's ID in that table.
const (
	TableWarehouse   Table = 1  // name
	TableNamespace   Table = 2  // warehouse id / parent id / level; at the top, the parent is the warehouse
	TableEntry       Table = 3  // namespace id / name
	TablePointer     Table = 4  // pointer id
	TableUUID        Table = 5  // table-uuid, lower case
	TableLocation    Table = 6  // normalised URI
	TableTransaction Table = 7  // commit id
	TableIdempotency Table = 8  // hash of principal, warehouse, key
	TableChange      Table = 9  // commit id
	TableTask        Table = 10 // task id
	TableFormat      Table = 11 // "format"
	TablePrincipal   Table = 12 // name
	TableRole        Table = 13 // name
	TableGrants      Table = 14 // id of the object, or "server"
	TablePolicy      Table = 15 // name; not used yet
	TableSecret      Table = 16 // id, or "store"
	TableAccess      Table = 17 // "epoch", "recent", "store", "console", "key/" and "maker/" with ids
	TableCursor      Table = 18 // name of a reader of the order of changes, such as "horizon"
	TableSchedule    Table = 19 // pointer id
	TableDue         Table = 20 // shard / time / pointer id / kind, or DueBlockedKey, WindowKey, WaitingKey
	TableJob         Table = 21 // pointer id / kind
	TableRun         Table = 22 // pointer id / time, the latest first / job id
	TableLease       Table = 23 // pointer id
	TableAssignment  Table = 25 // name of a piece of work, such as "purge/" and the id of a task
	TableLabel       Table = 27 // pointer id
	TableDropped     Table = 26 // warehouse id / names / time, the latest first / id: see DroppedKey
	TableTombstone   Table = 29 // normalised URI

	TableMaintenancePolicy Table = 24 // "server", or "w/", "n/", "t/" and the id of a warehouse, namespace, pointer
)

var tableNames = map[Table]string{
	TableWarehouse: "warehouse", TableNamespace: "namespace", TableEntry: "entry", TablePointer: "pointer",
	TableUUID: "table-uuid", TableLocation: "location", TableTransaction: "transaction",
	TableIdempotency: "idempotency", TableChange: "change", TableTask: "task", TableFormat: "format",
	TablePrincipal: "principal", TableRole: "role", TableGrants: "grants", TablePolicy: "access-policy",
	TableSecret: "secret", TableAccess: "access", TableCursor: "cursor", TableAssignment: "assignment",
	TableSchedule: "schedule", TableDue: "due", TableJob: "job", TableRun: "run", TableLease: "lease",
	TableMaintenancePolicy: "maintenance-policy", TableTombstone: "tombstone", TableDropped: "dropped",
	TableLabel: "label",
}

// Tables returns every table, in the order of their numbers.
func Tables() []Table {
	return slices.Sorted(maps.Keys(tableNames)) // unused numbers are for future records
}

// String returns the table's name in messages and in SQL.
func (t Table) String() string {
	if name, ok := tableNames[t]; ok {
		return name
	}
	return fmt.Sprintf("table %d", uint8(t))
}

// logged reports whether writes to the table are listed in change records.
func (t Table) logged() bool {
	switch t {
	case TableWarehouse, TableNamespace, TableEntry, TablePointer, TableSecret:
		return true
	}
	return t.IsPolicy()
}

// IsPolicy reports whether the table holds access policy: records that determine authorization.
// Each Apply that writes such a record also increments the epoch (see Epoch).
func (t Table) IsPolicy() bool {
	switch t {
	case TablePrincipal, TableRole, TableGrants, TablePolicy:
		return true
	}
	return false
}

// Key addresses a record. ID may hold any bytes. It must be UTF-8 in the tables whose writes are
// listed in change records: warehouse, namespace, entry, pointer, secret, and the tables of access
// policy. Keys of one table are ordered by ID.
type Key struct {
	Table Table  `json:"table"`
	ID    string `json:"id"`
}

// String returns table/ID, with unprintable bytes escaped.
func (k Key) String() string {
	id := fmt.Sprintf("%+q", k.ID)
	return k.Table.String() + "/" + id[1:len(id)-1]
}

// Compare orders keys by table, then by ID.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Table, other.Table), strings.Compare(k.ID, other.ID))
}

func (k Key) check() error {
	if _, ok := tableNames[k.Table]; !ok {
		return fmt.Errorf("%w: %s", ErrBadBatch, k)
	}
	if k.ID == "" || len(k.ID) > KeyBytesMax {
		return fmt.Errorf("%w: key of %d bytes, 1 to %d are allowed", ErrBadBatch, len(k.ID), KeyBytesMax)
	}
	return nil
}

// CheckKeys returns ErrBadBatch if one of keys is not a valid key. Every store's Get calls it.
func CheckKeys(keys []Key) error {
	for _, k := range keys {
		if err := k.check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckList returns ErrBadBatch unless table exists and limit is between 1 and ListLimitMax. Every
// store's List calls it.
func CheckList(table Table, limit int) error {
	if _, ok := tableNames[table]; !ok {
		return fmt.Errorf("%w: %s", ErrBadBatch, table)
	}
	return CheckPage(limit)
}

// IsLastPage reports whether page, a result of List for limit, is the last page.
func IsLastPage(page []Record, limit int) bool {
	bytes := 0
	for _, record := range page {
		bytes += len(record.Value)
	}
	return len(page) < limit && bytes < ListBytesMax
}

// CheckPage returns ErrBadBatch unless limit is between 1 and ListLimitMax. Every store's Changes
// calls it.
func CheckPage(limit int) error {
	if limit < 1 || limit > ListLimitMax {
		return fmt.Errorf("%w: limit %d, 1 to %d are allowed", ErrBadBatch, limit, ListLimitMax)
	}
	return nil
}

// ID identifies a warehouse, namespace, pointer, commit or task: 128 random
// bits drawn by the server. The zero ID identifies nothing.
type ID [16]byte

// NewID draws an ID from random.
func NewID(random io.Reader) (ID, error) {
	etag, err := NewETag(random)
	return ID(etag), err
}

// IsZero reports whether id identifies nothing.
func (id ID) IsZero() bool { return id == ID{} }

// String returns id as 32 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns the text of String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the text of String.
func (id *ID) UnmarshalText(text []byte) error { return unmarshalHex(id[:], text) }

func unmarshalHex(into []byte, text []byte) error {
	if hex.DecodedLen(len(text)) != len(into) {
		return fmt.Errorf("%d hexadecimal digits, want %d", len(text), hex.EncodedLen(len(into)))
	}
	_, err := hex.Decode(into, text)
	return err
}

// WarehouseKey is the key of the warehouse called name.
func WarehouseKey(name string) Key { return Key{TableWarehouse, name} }

// NamespaceKey is the key of the namespace called level below parent. parent is the id of a
// namespace, or of the warehouse for a top level.
func NamespaceKey(warehouse, parent ID, level string) Key {
	return Key{TableNamespace, NamespacePrefix(warehouse, parent) + level}
}

// NamespacePrefix is the prefix of the IDs of all namespaces directly below parent.
func NamespacePrefix(warehouse, parent ID) string {
	return warehouse.String() + "/" + parent.String() + "/"
}

// EntryKey is the key of the entry called name in a namespace.
func EntryKey(namespace ID, name string) Key {
	return Key{TableEntry, EntryPrefix(namespace) + name}
}

// EntryPrefix is the prefix of the IDs of all entries of a namespace.
func EntryPrefix(namespace ID) string { return namespace.String() + "/" }

// PointerKey is the key of the pointer with this id.
func PointerKey(id ID) Key { return Key{TablePointer, id.String()} }

// UUIDKey is the key that claims a table-uuid.
func UUIDKey(tableUUID string) Key { return Key{TableUUID, strings.ToLower(tableUUID)} }

// LocationKey is the key that claims a location, given in its normalised form.
func LocationKey(normalised string) Key { return Key{TableLocation, normalised} }

// TombstoneKey is the key of the tombstone of a table or view that lived at a location, given in
// its normalised form.
func TombstoneKey(normalised string) Key { return Key{TableTombstone, normalised} }

// TransactionKey is the key of the transaction record of a commit.
func TransactionKey(commit ID) Key { return Key{TableTransaction, commit.String()} }

// ChangeKey is the key of a commit's change record.
func ChangeKey(commit ID) Key { return Key{TableChange, commit.String()} }

// TaskKey is the key of a task.
func TaskKey(id ID) Key { return Key{TableTask, id.String()} }

// FormatKey is the key of the record with the version of the store's layout.
func FormatKey() Key { return Key{TableFormat, "format"} }

// AssignmentKey is the key of the assignment of a piece of work.
func AssignmentKey(work string) Key { return Key{TableAssignment, work} }
