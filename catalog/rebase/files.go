package rebase

import (
	"context"
	"errors"

	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/manifests"
)

const (
	// unpackedTimes is the assumed ratio of a file's unpacked length to its length. If the assumed
	// length is too short, it is multiplied by the same factor.
	unpackedTimes = 32
	// unpackedMin is the smallest assumed length of an unpacked file.
	unpackedMin = 16 << 10
)

var (
	errOutside = errors.New("rebase: not within the locations that the table has claimed")
	errNoRoom  = errors.New("rebase: no room for metadata")
	errOther   = errors.New("rebase: another list says something else of the manifest")
)

// files reads lists and manifests of one table.
type files struct {
	reader *manifests.Reader
	cache  *cache
	made   map[string]*manifests.List // not yet written, by location; the cache may drop them
	found  *directory.Found
	room   *documents.Share
	waits  bool // if true, take waits for room; otherwise it fails at once
	docs   *documents.Documents
}

// list returns the manifest list at location. It shares equal entries with other, another list,
// which may be nil.
func (f *files) list(ctx context.Context, location string, other *manifests.List) (list *manifests.List, err error) {
	if made := f.made[location]; made != nil {
		return made, nil
	}
	if known := f.cache.get(f.place(location)); known.list != nil {
		return known.list, nil
	}
	err = f.read(ctx, location, func(raw []byte, bytesMax int) (err error) {
		list, err = f.reader.List(raw, other, bytesMax)
		return err
	})
	if err == nil {
		f.cache.put(f.place(location), kept{list: list})
		err = f.take(ctx, f.room, int64(list.Size()))
	}
	return list, err
}

// place returns the key of the file at location in the cache.
func (f *files) place(location string) place { return place{f.found.Pointer.ID, location} }

// manifest returns the contents of the manifest listed in e.
func (f *files) manifest(ctx context.Context, e *manifests.Entry) (*contents, error) {
	if known := f.cache.get(f.place(e.Path)).contents; known != nil {
		if known.length != e.Length || known.snapshot != e.SnapshotID {
			return nil, errOther
		}
		return known, nil
	}
	var c *contents
	err := f.read(ctx, e.Path, func(raw []byte, bytesMax int) (err error) {
		c, err = readContents(f.reader, e, raw, &bytesMax)
		return err
	})
	if err == nil {
		f.cache.put(f.place(e.Path), kept{contents: c})
	}
	return c, err
}

// read reads the file at location, and parses it with room reserved for its assumed length. If the
// file is longer, read takes more room, up to the maximum length of a file, and parses it again. At
// the end it gives back all room.
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

// take reserves a number of bytes in room.
func (f *files) take(ctx context.Context, room *documents.Share, bytes int64) error {
	switch {
	case f.waits:
		return room.Take(ctx, bytes)
	case !room.TryTake(bytes):
		return errNoRoom
	}
	return nil
}
