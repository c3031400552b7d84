package claims

import (
	"context"

	"github.com/maypok86/otter/v2"

	"moorage/registry"
)

// foldersMax is the maximum number of remembered folders. Each takes a few hundred bytes.
const foldersMax = 20_000

// folders remembers the records of folders in state below, without their values. A claim below a
// folder requires the folder's record but does not change it, so the next claim need not read it.
// If a record has changed in the meantime, the Apply of the claim fails. Folders with a tombstone
// are not remembered. A remembered folder cannot have got a tombstone unnoticed: the tombstone
// comes with a new version of the folder's record. folders is safe for concurrent use.
type folders struct {
	cache *otter.Cache[string, *registry.Record]
}

func newFolders() *folders {
	return &folders{otter.Must(&otter.Options[string, *registry.Record]{MaximumSize: foldersMax})}
}

// remember caches the last version of a folder's record, if other claims can require that version.
func (f *folders) remember(folder place) {
	record := folder.record
	if record.State != registry.StateBelow || folder.tombstone.Exists() {
		f.cache.Invalidate(record.Key.ID)
		return
	}
	record.Value = nil
	f.cache.Set(record.Key.ID, &record)
}

// place is the record and the tombstone of a location or folder. Either may be missing in the
// store, but its Key is always set.
type place struct {
	record, tombstone registry.Record
}

func placeOf(key registry.Key, record, tombstone registry.Record) place {
	record.Key, tombstone.Key = key, registry.TombstoneKey(key.ID)
	return place{record, tombstone}
}

// read returns the location of key, without its tombstone, and then the folders above it. If
// fromMemory is true, it uses remembered folders without reading them.
func (c *Claims) read(ctx context.Context, key registry.Key, above []string, fromMemory bool) ([]place, error) {
	places := make([]place, 1, 1+len(above))
	keys := []registry.Key{key}
	var indexes []int // the index in places of each further pair of keys
	for _, folder := range above {
		var known place
		if kept, ok := c.folders.cache.GetIfPresent(folder); ok && fromMemory {
			known.record = *kept
		} else {
			keys = append(keys, registry.LocationKey(folder), registry.TombstoneKey(folder))
			indexes = append(indexes, len(places))
		}
		places = append(places, known)
	}
	read, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	places[0] = placeOf(key, read[0], registry.Record{})
	for i, index := range indexes {
		places[index] = placeOf(keys[2*i+1], read[2*i+1], read[2*i+2])
		c.folders.remember(places[index])
	}
	return places, nil
}
