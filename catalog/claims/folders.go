package claims

import (
	"context"

	"github.com/maypok86/otter/v2"

	"moorage/registry"
)

// foldersMax bounds how many folders are remembered; an element is a few hundred bytes.
const foldersMax = 20_000

// folders remembers the records of folders in state below, without their values. All claims beneath
// a folder require its record and leave it as it is, so the next one need not read it. A record
// that has changed since makes the Apply fail. It is safe for concurrent use.
type folders struct {
	cache *otter.Cache[string, *registry.Record]
}

func newFolders() *folders {
	return &folders{otter.Must(&otter.Options[string, *registry.Record]{MaximumSize: foldersMax})}
}

// remember keeps the last version of a folder's record, if another claim can build on it.
func (f *folders) remember(record registry.Record) {
	if record.State != registry.StateBelow {
		f.cache.Invalidate(record.Key.ID)
		return
	}
	record.Value = nil
	f.cache.Set(record.Key.ID, &record)
}

// read returns the record of the location that key is of, and then those of the folders above it,
// which with fromMemory are not read if they are remembered.
func (c *Claims) read(ctx context.Context, key registry.Key, above []string, fromMemory bool) (
	[]registry.Record, error) {
	records := make([]registry.Record, 1, 1+len(above))
	keys := []registry.Key{key}
	places := []int{0} // of each key, in records
	for _, folder := range above {
		var known registry.Record
		if kept, ok := c.folders.cache.GetIfPresent(folder); ok && fromMemory {
			known = *kept
		} else {
			keys, places = append(keys, registry.LocationKey(folder)), append(places, len(records))
		}
		records = append(records, known)
	}
	read, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, record := range read {
		record.Key = keys[i] // one that does not exist has none
		records[places[i]] = record
		if i > 0 {
			c.folders.remember(record)
		}
	}
	return records, nil
}
