package registry

import (
	"fmt"
	"strings"
	"time"
)

// windowPrefix is the prefix of the IDs of all records of WindowKey, and waitingPrefix that of all
// records of WaitingKey. No shard of the due index has these names.
const (
	windowPrefix  = "window/"
	waitingPrefix = "purge/"
)

// WindowPrefix is the prefix of the IDs of all records of WindowKey.
func WindowPrefix() string { return windowPrefix }

// WaitingPrefix is the prefix of the IDs of all records of WaitingKey.
func WaitingPrefix() string { return waitingPrefix }

// momentID returns the first ID with prefix in the second that contains the time at.
func momentID(prefix string, at time.Time) string {
	return fmt.Sprintf("%s%09x", prefix, max(at.Unix(), 0))
}

// windowID returns the first ID of the records of drops in the second that contains the time
// dropped.
func windowID(dropped time.Time) string { return momentID(windowPrefix, dropped) }

// WindowEnd returns the first ID after the records of all drops up to the time last: the exclusive
// bound of a list.
func WindowEnd(last time.Time) string { return windowID(last.Add(time.Second)) }

// WindowKey is the key of the record of a drop of a table or view without a purge. Its value is an
// empty Due. IDs are ordered by the time of the drop, in seconds. The Apply that drops the pointer
// writes the record. The Apply that ends the pointer or restores it deletes the record. The record
// is only a hint: the pointer is authoritative. A daily walk over the pointers finds drops that
// have no record.
func WindowKey(pointer ID, dropped time.Time) Key {
	return Key{TableDue, windowID(dropped) + "/" + pointer.String()}
}

// ParseWindow returns the pointer and the time of the drop, in seconds, of a key made by WindowKey.
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

// WaitingKey is the key of the record of a waiting purge. The value is a Due with Purge. IDs are
// ordered by the time when the purge may begin, in seconds. The Apply that drops the table with a
// purge writes the record. The Apply that begins the purge or restores the table deletes the
// record.
func WaitingKey(pointer ID, at time.Time) Key {
	return Key{TableDue, momentID(waitingPrefix, at) + "/" + pointer.String()}
}

// WaitingEnd returns the first ID after the records of all purges that may begin up to the time
// last: the exclusive bound of a list.
func WaitingEnd(last time.Time) string { return momentID(waitingPrefix, last.Add(time.Second)) }

// ParseWaiting returns the pointer and the time, in seconds, of a key made by WaitingKey.
func ParseWaiting(key Key) (pointer ID, at time.Time, err error) {
	pointer, at, err = parseMoment(waitingPrefix, key)
	if err != nil || WaitingKey(pointer, at) != key {
		return ID{}, time.Time{}, fmt.Errorf("%s is not the key of a purge that waits", key)
	}
	return pointer, at, nil
}

// PurgeWaits reports whether the purge of a dropped table waits for its time. Until then the table
// can be restored.
func (p Pointer) PurgeWaits() bool { return !p.Task.IsZero() && p.PurgeDelay > 0 }

// PurgeAt returns when a waiting purge may begin, by the store's clock.
func (p Pointer) PurgeAt() time.Time { return p.Since.Add(p.PurgeDelay) }

// EndKey returns the key of the record that leads a worker to a dropped pointer that must end. With
// a purge, that is the task of the purge, or the record of WaitingKey while the purge waits.
// Otherwise it is the record of WindowKey.
func (p Pointer) EndKey() Key {
	switch {
	case p.Task.IsZero():
		return WindowKey(p.ID, p.Since)
	case p.PurgeWaits():
		return WaitingKey(p.ID, p.PurgeAt())
	}
	return TaskKey(p.Task)
}
