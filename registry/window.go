package registry

import (
	"fmt"
	"strings"
	"time"
)

// windowPrefix begins the IDs of all records of WindowKey, and waitingPrefix those of WaitingKey.
// No shard of the due index is called so.
const (
	windowPrefix  = "window/"
	waitingPrefix = "purge/"
)

// WindowPrefix is what the IDs of all records of WindowKey start with.
func WindowPrefix() string { return windowPrefix }

// WaitingPrefix is what the IDs of all records of WaitingKey start with.
func WaitingPrefix() string { return waitingPrefix }

// momentID is the first ID behind prefix of what belongs to the second of at.
func momentID(prefix string, at time.Time) string {
	return fmt.Sprintf("%s%09x", prefix, max(at.Unix(), 0))
}

// windowID is the first ID of those drops that happened in the second of dropped.
func windowID(dropped time.Time) string { return momentID(windowPrefix, dropped) }

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
	pointer, dropped, err = parseMoment(windowPrefix, key)
	if err != nil || WindowKey(pointer, dropped) != key {
		return ID{}, time.Time{}, fmt.Errorf("%s is not the key of a drop", key)
	}
	return pointer, dropped, nil
}

// parseMoment reads a pointer and a time, in seconds, from an ID that begins with prefix.
func parseMoment(prefix string, key Key) (pointer ID, at time.Time, err error) {
	moment, id, _ := strings.Cut(strings.TrimPrefix(key.ID, prefix), "/")
	var seconds int64
	if _, err = fmt.Sscanf(moment, "%09x", &seconds); err == nil {
		err = pointer.UnmarshalText([]byte(id))
	}
	return pointer, time.Unix(seconds, 0).UTC(), err
}

// WaitingKey is the key of the record that says when the purge of a dropped table may begin. The
// value is a Due with Purge. IDs are ordered by that time, in seconds. The Apply that drops the
// table with a purge writes the record, and the one that begins the purge or takes the table back
// deletes it.
func WaitingKey(pointer ID, at time.Time) Key {
	return Key{TableDue, momentID(waitingPrefix, at) + "/" + pointer.String()}
}

// WaitingEnd is the first ID behind those of all purges that may begin until last: the bound of a
// list.
func WaitingEnd(last time.Time) string { return momentID(waitingPrefix, last.Add(time.Second)) }

// ParseWaiting returns the pointer and the time, in seconds, of a key that WaitingKey made.
func ParseWaiting(key Key) (pointer ID, at time.Time, err error) {
	pointer, at, err = parseMoment(waitingPrefix, key)
	if err != nil || WaitingKey(pointer, at) != key {
		return ID{}, time.Time{}, fmt.Errorf("%s is not the key of a purge that waits", key)
	}
	return pointer, at, nil
}

// PurgeWaits reports whether the purge of a dropped table waits for its time. Until it begins the
// table can come back.
func (p Pointer) PurgeWaits() bool { return !p.Task.IsZero() && p.PurgeDelay > 0 }

// PurgeAt returns when a purge that waits may begin, by the store's clock.
func (p Pointer) PurgeAt() time.Time { return p.Since.Add(p.PurgeDelay) }

// EndKey is the key of the record by which a worker finds a dropped pointer when it is to end: the
// task of its purge, the record of a purge that waits, or else the record of its window.
func (p Pointer) EndKey() Key {
	switch {
	case p.Task.IsZero():
		return WindowKey(p.ID, p.Since)
	case p.PurgeWaits():
		return WaitingKey(p.ID, p.PurgeAt())
	}
	return TaskKey(p.Task)
}
