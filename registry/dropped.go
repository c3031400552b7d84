package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"moorage"
)

// droppedPathMax is the maximum length of a path of names in a key of DroppedKey.
const droppedPathMax = 2400

// Dropped is the value of a dropped record. The record describes a table or view that was dropped
// or has ended for good, or a dropped namespace. So dropped objects can be found by name even when
// their other records are gone. The record's state is StateDropped while the object can be
// restored, and StateEnded after that.
//
// The Apply that drops a pointer writes the record, and the Apply that restores it deletes the
// record. The Apply that ends an object marks the record as ended, and its change refers to the
// record (Item.Ended). The sweep deletes the record together with that change. Like the record of
// WindowKey, the record is only a hint: the pointer is authoritative. A daily walk adds missing
// records of pointers that were dropped by a node of version 0.1.0, and deletes records left by
// such a node.
type Dropped struct {
	Unknown
	ID    ID                 `json:"id"`         // of the pointer or namespace
	Kind  string             `json:"kind"`       // ItemTable, ItemView or ItemNamespace
	Ident moorage.Identifier `json:"identifier"` // the last name
	UUID  string             `json:"uuid,omitempty"`
	// At is when the object was dropped, by the store's clock. By is the caller of the drop, and
	// Change its change. By is empty and Change is zero if the object was dropped by a node of
	// version 0.1.0.
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Change ID        `json:"change,omitzero"`
	// Ended is when the object ended for good, by the store's clock. How is one of the constants
	// for Tombstone.How, or EndedDrop. EndedBy is the caller that ended it, and EndedChange the
	// change.
	Ended       time.Time `json:"ended,omitzero"`
	How         string    `json:"how,omitempty"`
	EndedBy     string    `json:"ended-by,omitempty"`
	EndedChange ID        `json:"ended-change,omitzero"`
}

// EndedDrop is the Dropped.How of a namespace, which ends with its drop.
const EndedDrop = "drop"

// DroppedPrefix returns the prefix of the IDs of all dropped records in a namespace and in the
// namespaces below it. Without levels, it returns the prefix for the whole warehouse.
func DroppedPrefix(warehouse ID, namespace moorage.Namespace) string {
	var prefix strings.Builder
	prefix.WriteString(warehouse.String() + "/")
	for _, level := range namespace {
		prefix.WriteString(level + "\x00")
	}
	return prefix.String()
}

// DroppedNamesPrefix returns the prefix of the IDs of the dropped records directly in a namespace.
// It does not cover records with a path that is too long for a key.
func DroppedNamesPrefix(warehouse ID, namespace moorage.Namespace) string {
	return DroppedPrefix(warehouse, namespace) + "\x01"
}

// DroppedNamePrefix returns the prefix of the IDs of all dropped records with a name; the latest
// drop sorts first. Names contain no NUL. If the path is too long for a key, the prefix has a hash
// instead.
func DroppedNamePrefix(warehouse ID, namespace moorage.Namespace, name string) string {
	path := DroppedNamesPrefix(warehouse, namespace) + name + "\x00"
	if len(path) <= droppedPathMax {
		return path
	}
	hash := sha256.Sum256([]byte(path))
	return warehouse.String() + "/\x02" + hex.EncodeToString(hash[:]) + "\x00"
}

// DroppedKey returns the key of the record of an object that was dropped, or has ended, at a time.
func DroppedKey(warehouse ID, namespace moorage.Namespace, name string, at time.Time, id ID) Key {
	latestFirst := uint64(math.MaxInt64 - at.UnixNano())
	prefix := DroppedNamePrefix(warehouse, namespace, name)
	return Key{TableDropped, fmt.Sprintf("%s%016x/%s", prefix, latestFirst, id)}
}

// DroppedAt returns the time of the drop of p, by the store's clock. state is the state of the
// pointer's record.
//
// A drop sets Since and Dropped to the same time. While the state is StateDropped, Since is written
// only to correct a clock that was ahead, and that makes it earlier. So a Dropped before Since does
// not belong to this drop: nodes of version 0.1.0 kept the member, restored the object and dropped
// it again. The beginning of a purge sets a later Since and, in the same write, the correct
// Dropped.
func (p Pointer) DroppedAt(state State) time.Time {
	if p.Dropped.IsZero() || state == StateDropped && p.Dropped.Before(p.Since) {
		return p.Since
	}
	return p.Dropped
}

// DroppedKey returns the key of the dropped record for p. state is the state of the pointer's
// record.
func (p Pointer) DroppedKey(state State) Key {
	return DroppedKey(p.WarehouseID, p.Namespace, p.Name, p.DroppedAt(state), p.ID)
}

// AsDropped returns the value of the dropped record for p. state is the state of the pointer's
// record, and change is the drop.
func (p Pointer) AsDropped(state State, change Change) Dropped {
	dropped := Dropped{
		ID: p.ID, Kind: ItemTable, Ident: p.Identifier(), UUID: p.TableUUID, At: p.DroppedAt(state),
		By: change.Principal, Change: change.ID,
	}
	if p.View {
		dropped.Kind = ItemView
	}
	return dropped
}
