package rebase

import (
	"context"
	"errors"
	"math"

	"github.com/maypok86/otter/v2"

	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/manifests"
	"moorage/registry"
)

const (
	// keptBytes bounds the lists and manifests that are cached in memory.
	keptBytes = 32 << 20
	// unpackedTimes is the assumed ratio of a file's unpacked length to its length. It is also the
	// factor by which the assumed length grows if it was too short.
	unpackedTimes = 32
	// unpackedMin is the smallest assumed length of an unpacked file.
	unpackedMin = 16 << 10
)

// placeOf returns the key of a file in the cache: its pointer, and its location. Another table may
// have a file of the same name in another storage.
func placeOf(pointer registry.ID, location string) string { return string(pointer[:]) + location }

// kept is the parsed content of one file that was read or will be written. One member is set.
// Engines write a file once, under a name never used before.
type kept struct {
	list     *manifests.List
	contents *contents
}

// cache caches parsed files. It is safe for concurrent use.
type cache = otter.Cache[string, *kept]

func newCache() *cache {
	return otter.Must(&otter.Options[string, *kept]{
		MaximumWeight: keptBytes,
		Weigher: func(place string, k *kept) uint32 {
			size := len(place) + 128
			if k.list != nil {
				size += k.list.Size()
			}
			if k.contents != nil {
				size += k.contents.size()
			}
			return uint32(min(size, math.MaxUint32))
		},
	})
}

var (
	errOutside = errors.New("rebase: not within the locations that the table has claimed")
	errNoRoom  = errors.New("rebase: no room for metadata")
	errOther   = errors.New("rebase: another list says something else of the manifest")
)

// files reads lists and manifests of one table.
type files struct {
	cache *cache
	made  map[string]*manifests.List // by location, not yet written; the cache may drop them
	found *directory.Found
	room  *documents.Share
	waits bool // whether take waits for room
	docs  *documents.Documents
}

// list returns the manifest list at location.
func (f *files) list(ctx context.Context, location string) (list *manifests.List, err error) {
	if made := f.made[location]; made != nil {
		return made, nil
	}
	if known, ok := f.cache.GetIfPresent(placeOf(f.found.Pointer.ID, location)); ok && known.list != nil {
		return known.list, nil
	}
	err = f.read(ctx, location, func(raw []byte, bytesMax int) (err error) {
		list, err = manifests.ReadList(raw, bytesMax)
		return err
	})
	if err == nil {
		f.keep(location, list)
		err = f.take(ctx, f.room, int64(list.Size()))
	}
	return list, err
}

// keep caches the list at location.
func (f *files) keep(location string, list *manifests.List) {
	f.cache.Set(placeOf(f.found.Pointer.ID, location), &kept{list: list})
}

// manifest returns the contents of the manifest of e.
func (f *files) manifest(ctx context.Context, e *manifests.Entry) (*contents, error) {
	place := placeOf(f.found.Pointer.ID, e.Path)
	if known, ok := f.cache.GetIfPresent(place); ok && known.contents != nil {
		if known.contents.length != e.Length || known.contents.snapshot != e.SnapshotID {
			return nil, errOther
		}
		return known.contents, nil
	}
	var c *contents
	err := f.read(ctx, e.Path, func(raw []byte, bytesMax int) (err error) {
		c, err = readContents(e, raw, &bytesMax)
		return err
	})
	if err == nil {
		f.cache.Set(place, &kept{contents: c})
	}
	return c, err
}

// read reads the file at location, and parses it within room for its assumed length. If that is too
// little it takes more, up to the maximum length of a file, and parses again. It gives all room
// back.
func (f *files) read(ctx context.Context, location string, parse func(raw []byte, bytesMax int) error) error {
	if !documents.WithinClaims(f.found.Pointer.Claims, location) {
		return errOutside
	}
	room := f.docs.Room().Enter(f.found.Pointer.Warehouse)
	defer room.GiveBack()
	take := func(ctx context.Context, bytes int64) error { return f.take(ctx, room, bytes) }
	raw, err := f.docs.ReadRaw(ctx, f.found.Storage, location, manifests.FileBytesMax, take)
	if err != nil {
		return err
	}
	taken := 0
	for bytesMax := max(unpackedTimes*len(raw), unpackedMin); ; bytesMax *= unpackedTimes {
		bytesMax = min(bytesMax, manifests.FileBytesMax)
		if err := take(ctx, int64(bytesMax-taken)); err != nil {
			return err
		}
		taken = bytesMax
		err := parse(raw, bytesMax)
		if !errors.Is(err, manifests.ErrTooLarge) || bytesMax == manifests.FileBytesMax {
			return err
		}
	}
}

// take takes bytes from room.
func (f *files) take(ctx context.Context, room *documents.Share, bytes int64) error {
	switch {
	case f.waits:
		return room.Take(ctx, bytes)
	case !room.TryTake(bytes):
		return errNoRoom
	}
	return nil
}
