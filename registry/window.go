package registry

import (
	"fmt"
	"strings"
	"time"
)

// windowPrefix begins the IDs of all records of WindowKey. No shard of the due index is called so.
const windowPrefix = "window/"

// WindowPrefix is what the IDs of all records of WindowKey start with.
func WindowPrefix() string { return windowPrefix }

// windowID is the first ID of those drops that happened in the second of dropped.
func windowID(dropped time.Time) string {
	return fmt.Sprintf("%s%09x", windowPrefix, max(dropped.Unix(), 0))
}

// WindowEnd is the first ID behind those of all drops until last: the bound of a list.
func WindowEnd(last time.Time) string { return windowID(last.Add(time.Second)) }

// WindowKey is the key of the record that says when a table or view was dropped without a purge.
// Its value is an empty Due. IDs are ordered by the time of the drop, in seconds. The Apply that
// drops the pointer writes the record, and the one that ends the pointer or takes it back deletes
// it. The record is a hint: an older version takes the pointer back and leaves the record, and it
// drops without writing one.
func WindowKey(pointer ID, dropped time.Time) Key {
	return Key{TableDue, windowID(dropped) + "/" + pointer.String()}
}

// ParseWindow returns the pointer and the time of the drop, in seconds, of a key that WindowKey
// made.
func ParseWindow(key Key) (pointer ID, dropped time.Time, err error) {
	at, id, _ := strings.Cut(strings.TrimPrefix(key.ID, windowPrefix), "/")
	var seconds int64
	_, err = fmt.Sscanf(at, "%09x", &seconds)
	if err == nil {
		err = pointer.UnmarshalText([]byte(id))
	}
	dropped = time.Unix(seconds, 0).UTC()
	if err != nil || WindowKey(pointer, dropped) != key {
		return ID{}, time.Time{}, fmt.Errorf("%s is not the key of a drop", key)
	}
	return pointer, dropped, nil
}

// EndKey is the key of the record by which a worker finds a dropped pointer when it is to end: the
// task of its purge, or else the record of its window.
func (p Pointer) EndKey() Key {
	if p.Task.IsZero() {
		return WindowKey(p.ID, p.Since)
	}
	return TaskKey(p.Task)
}
