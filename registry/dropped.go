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

// droppedPathMax is the longest path of names in a key of DroppedKey.
const droppedPathMax = 2400

// Dropped is the value of a dropped record: a table or view that was dropped, or that ended for
// good, or a namespace that was dropped. So dropped objects are found by name, also when their
// other records are gone. The record's state is StateDropped while the object can come back, and
// StateEnded after that.
//
// The Apply that drops a pointer writes the record, and the Apply that restores it deletes the
// record. The Apply that ends an object writes the record as ended, and the change names it
// (Item.Ended). The sweep deletes the record together with that change. The record is a hint, as
// the record of WindowKey is: the pointer is authoritative. A daily walk adds the records of
// pointers that a node of version 0.1.0 dropped, and deletes those that such a node left.
type Dropped struct {
	Unknown
	ID    ID                 `json:"id"`         // of the pointer or namespace
	Kind  string             `json:"kind"`       // ItemTable, ItemView or ItemNamespace
	Ident moorage.Identifier `json:"identifier"` // the last name
	UUID  string             `json:"uuid,omitempty"`
	// At is when the object was dropped, by the store's clock. By is the caller, and Change the
	// change. By is empty and Change is zero if a node of version 0.1.0 dropped it.
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Change ID        `json:"change,omitzero"`
	// Ended is when the object ended for good, by the store's clock. How is one of the constants
	// for Tombstone.How, or EndedDrop. EndedBy is the caller, and EndedChange the change.
	Ended       time.Time `json:"ended,omitzero"`
	How         string    `json:"how,omitempty"`
	EndedBy     string    `json:"ended-by,omitempty"`
	EndedChange ID        `json:"ended-change,omitzero"`
}

// EndedDrop is Dropped.How of a namespace: it ends with its drop.
const EndedDrop = "drop"

// DroppedPrefix is the prefix of the IDs of all dropped records of a namespace and of the
// namespaces below it. Without levels it is the prefix of all of a warehouse.
func DroppedPrefix(warehouse ID, namespace moorage.Namespace) string {
	var prefix strings.Builder
	prefix.WriteString(warehouse.String() + "/")
	for _, level := range namespace {
		prefix.WriteString(level + "\x00")
	}
	return prefix.String()
}

// DroppedNamesPrefix is the prefix of the IDs of the dropped records directly in a namespace,
// without those whose path is too long for a key.
func DroppedNamesPrefix(warehouse ID, namespace moorage.Namespace) string {
	return DroppedPrefix(warehouse, namespace) + "\x01"
}

// DroppedNamePrefix is the prefix of the IDs of all dropped records with a name, the latest drop
// first. Names contain no NUL. A name with a path that is too long for a key is there as a hash.
func DroppedNamePrefix(warehouse ID, namespace moorage.Namespace, name string) string {
	path := DroppedNamesPrefix(warehouse, namespace) + name + "\x00"
	if len(path) <= droppedPathMax {
		return path
	}
	hash := sha256.Sum256([]byte(path))
	return warehouse.String() + "/\x02" + hex.EncodeToString(hash[:]) + "\x00"
}

// DroppedKey is the key of the record of an object that was dropped at a time, or that ended then.
func DroppedKey(warehouse ID, namespace moorage.Namespace, name string, at time.Time, id ID) Key {
	latestFirst := uint64(math.MaxInt64 - at.UnixNano())
	prefix := DroppedNamePrefix(warehouse, namespace, name)
	return Key{TableDropped, fmt.Sprintf("%s%016x/%s", prefix, latestFirst, id)}
}

// DroppedAt returns when p, whose record has this state, was dropped, by the store's clock.
//
// A drop sets Since and Dropped to one time. While the state is StateDropped, only the correction
// of a clock that was ahead writes Since, and that makes it earlier. So a Dropped before Since is
// not of this drop: nodes of version 0.1.0 kept the member, restored the object and dropped it
// again. A purge that begins sets a later Since and, in the same write, the right Dropped.
func (p Pointer) DroppedAt(state State) time.Time {
	if p.Dropped.IsZero() || state == StateDropped && p.Dropped.Before(p.Since) {
		return p.Since
	}
	return p.Dropped
}

// DroppedKey is the key of the dropped record of p, whose record has this state.
func (p Pointer) DroppedKey(state State) Key {
	return DroppedKey(p.WarehouseID, p.Namespace, p.Name, p.DroppedAt(state), p.ID)
}

// AsDropped returns the value of the dropped record of p, whose record has this state, and which
// change drops.
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
