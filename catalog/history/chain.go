package history

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
)

// chain is a walk along the changes of one object, from the latest to the first. The value that a
// change replaced identifies the previous change.
type chain struct {
	ledger *ledger.Ledger
	id     registry.ID
	// key is the key of the object's record. For a dropped namespace, it is zero until the walk has
	// read the change that deleted the record.
	key  registry.Key
	next registry.ID // the change that step will read; zero if there is none, or if it is unknown
	// wrote is the version of a namespace's record that the change next must have written. It is
	// zero if any version is accepted.
	wrote registry.ETag
	// pointer has the name and the location of a table or view after the change next. If they are
	// not set, step takes them from that change.
	pointer registry.Pointer
	// isComplete is true after step has read the change that created the object.
	isComplete bool
}

// step reads the next change. ok is false if there is none, or if it cannot be read. Retention
// deletes old changes, and records written by a node of version 0.1.0 do not identify their change.
func (c *chain) step(ctx context.Context) (change registry.Change, ok bool, err error) {
	id := c.next
	if c.next = (registry.ID{}); id.IsZero() {
		return change, false, nil
	}
	records, err := c.ledger.Get(ctx, registry.ChangeKey(id))
	if err != nil || !records[0].Exists() {
		return change, false, err
	}
	change, unread := registry.DecodeChange(records[0])
	if unread != nil {
		return change, false, nil
	}
	version, wrote := c.versionIn(change)
	if !wrote || !c.wrote.IsZero() && version.New != c.wrote {
		return change, false, nil
	}
	c.isComplete = version.Old.IsZero() && version.Before == nil
	if c.key.Table == registry.TableNamespace {
		c.followNamespace(version)
	} else {
		c.followPointer(change, version)
	}
	return change, true, nil
}

// versionIn returns the effect of a change on the object's record.
func (c *chain) versionIn(change registry.Change) (version registry.Version, wrote bool) {
	if c.key != (registry.Key{}) {
		return change.VersionOf(c.key)
	}
	for _, version := range change.Versions {
		if version.Key.Table != registry.TableNamespace || !version.New.IsZero() {
			continue
		}
		was, ok, err := version.Earlier(nil)
		if err != nil || !ok {
			continue
		}
		var namespace struct {
			ID registry.ID `json:"id"`
		}
		if json.Unmarshal(was, &namespace) == nil && namespace.ID == c.id {
			c.key = version.Key
			return version, true
		}
	}
	return version, false
}

// followPointer finds the previous change of a table or view.
func (c *chain) followPointer(change registry.Change, version registry.Version) {
	if c.pointer.Name == "" {
		item, _ := change.ItemOf(c.id)
		c.pointer = item.PointerAfter()
	}
	before, ok := version.PointerBefore(c.pointer)
	if !ok {
		return
	}
	c.pointer, c.next = before, before.LastIn(version.Before.State).Change
}

// followNamespace finds the previous change of a namespace. Each write of a namespace has a change,
// so the previous change must have written the replaced version.
func (c *chain) followNamespace(version registry.Version) {
	if version.Before == nil || version.Before.Cut {
		return
	}
	var before struct {
		Last registry.Last `json:"last"`
	}
	if json.Unmarshal(version.Before.Set, &before) == nil {
		c.next, c.wrote = before.Last.Change, version.Old
	}
}

// canResume reports whether a later walk can begin behind change, given only the ID of change.
func (c *chain) canResume(change registry.Change) bool {
	if c.key.Table == registry.TableNamespace {
		return true
	}
	_, ok := change.ItemOf(c.id)
	return ok
}

// resume begins the walk behind a change of the object, and returns that change.
//
// Errors: KindBadRequest if the change did not affect the object.
func (c *chain) resume(ctx context.Context, id registry.ID) (change registry.Change, err error) {
	if c.key == (registry.Key{}) { // the key is in the change that deleted the record
		if _, _, err := c.step(ctx); err != nil {
			return change, err
		}
	}
	c.next, c.wrote, c.pointer = id, registry.ETag{}, registry.Pointer{}
	change, ok, err := c.step(ctx)
	if err == nil && (!ok || !c.canResume(change)) {
		err = moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: the change is not kept any more")
	}
	return change, err
}

// FileAfter returns the metadata file of a live table or view after the change whose ID begins with
// prefix. It returns "" if there is no such change among the last FilesMax. For a complete ID, it
// does not read later changes.
//
// Errors: KindBadRequest if the IDs of several of these changes begin with prefix; KindUnavailable.
func (f *Feed) FileAfter(ctx context.Context, found *directory.Found, prefix string) (location string, err error) {
	c := f.chainOf(found)
	var whole registry.ID
	if whole.UnmarshalText([]byte(prefix)) == nil {
		c.next, c.pointer = whole, registry.Pointer{}
	}
	isWhole := !whole.IsZero()
	for range FilesMax {
		change, ok, err := c.step(ctx)
		if err != nil || !ok {
			return location, err
		}
		item, ok := change.ItemOf(c.id)
		if !ok || !strings.HasPrefix(change.ID.String(), prefix) {
			if isWhole {
				return "", nil
			}
			continue
		}
		if location != "" {
			return "", moorage.Errorf(moorage.KindBadRequest,
				"Several changes have an id that begins with %s: give more of its digits", prefix)
		}
		if location = item.PointerAfter().MetadataLocation; isWhole {
			return location, nil
		}
	}
	return location, nil
}

// FilesMax is the maximum number of changes that FileAfter and FindFile read.
const FilesMax = 200

// chainOf returns the walk along the changes of a live table or view.
func (f *Feed) chainOf(found *directory.Found) chain {
	return chain{
		ledger: f.config.Ledger, id: found.Pointer.ID, key: found.Record.Key,
		next: found.Pointer.LastIn(found.Record.State).Change, pointer: found.Pointer,
	}
}

// MadeFile is a metadata file made by a change of a table or view.
type MadeFile struct {
	Location string
	Time     time.Time // of the change
	Back     int       // the number of later files
}

// FindFile returns the latest metadata file of a live table or view for which isWanted returns
// true. It considers the files made by the last FilesMax changes of the object. If there is no such
// file, it returns "", and seen is the number of files.
//
// Errors: KindUnavailable.
func (f *Feed) FindFile(ctx context.Context, found *directory.Found, isWanted func(MadeFile) bool) (
	location string, seen int, err error) {
	c := f.chainOf(found)
	for range FilesMax {
		change, ok, err := c.step(ctx)
		if err != nil || !ok {
			return "", seen, err
		}
		item, ok := change.ItemOf(c.id)
		if !ok || !makesFile(item) {
			continue
		}
		if isWanted(MadeFile{item.MetadataLocation, change.Time, seen}) {
			return item.MetadataLocation, seen, nil
		}
		seen++
	}
	return "", seen, nil
}

// makesFile reports whether a change gave a table or view a new metadata file.
func makesFile(item registry.Item) bool {
	return item.MetadataLocation != "" && item.MetadataLocation != item.PreviousMetadataLocation
}

// eventsIn returns the events of the object in a change. The first grant on an object also writes
// the object's record, but has no event here: only the feed has events of grants.
func (c *chain) eventsIn(change registry.Change) []Event {
	return slices.DeleteFunc(eventsOf(registry.PositionedChange{Change: change}), func(e Event) bool {
		return e.ObjectID != c.id || e.Kind == registry.ItemGrants
	})
}
