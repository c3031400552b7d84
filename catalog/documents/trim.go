package documents

import (
	"context"
	"slices"
	"strconv"

	"moorage"
	"moorage/catalog/directory"
	"moorage/metadata"
	"moorage/storage"
)

// Trimmed are the metadata files that fell out of a table's log with a commit that certainly
// happened, and are to be deleted.
type Trimmed struct {
	Table *directory.Found // as it was last known
	Files []string
}

// TrimmedBy returns what is trimmed by the commit that made next of base: nothing, unless the table
// wants that.
func TrimmedBy(table *directory.Found, base Document, next File) Trimmed {
	after, isTable := next.Document.(*metadata.Document)
	if !isTable || !trims(after) { // a view has no metadata log
		return Trimmed{Table: table}
	}
	files := slices.DeleteFunc(after.TrimmedSince(base.(*metadata.Document)), func(file string) bool {
		return file == next.Location || !WithinClaims(table.Pointer.Claims, file)
	})
	return Trimmed{table, files}
}

// DeleteTrimmed deletes the files of all, with one read of the pointers, because somebody may have
// registered one of the files, or one that logs them, since, and one call of each storage. A
// failure leaves files that nothing names.
func (d *Documents) DeleteTrimmed(ctx context.Context, all []Trimmed) {
	all = slices.DeleteFunc(all, func(t Trimmed) bool { return len(t.Files) == 0 })
	if len(all) == 0 {
		return
	}
	known := make([]*directory.Found, len(all))
	for i, t := range all {
		known[i] = t.Table
	}
	now, err := d.directory.RereadAll(ctx, known)
	if err != nil {
		d.log.WarnContext(ctx, "could not look whether old metadata files are in use, they stay", "error", err)
		return
	}
	type place struct {
		store storage.Store
		files []string
	}
	places := make(map[string]*place) // by placeKey: a Store need not be comparable
	for i, t := range all {
		unnamed, err := d.unnamed(ctx, t, now[i])
		if err != nil {
			d.log.WarnContext(ctx, "could not look whether old metadata files are in use, they stay",
				"ident", t.Table.Pointer.Identifier(), "error", err)
		}
		if len(unnamed) == 0 {
			continue
		}
		key := directory.PlaceKey(t.Table.Place)
		if places[key] == nil {
			places[key] = &place{store: t.Table.Storage}
		}
		places[key].files = append(places[key].files, unnamed...)
	}
	for _, p := range places {
		if err := deleteFiles(ctx, p.store, p.files); err != nil {
			d.log.WarnContext(ctx, "could not delete old metadata files",
				"files", len(p.files), "error", moorage.OneLine(err.Error()))
		}
	}
}

// unnamed returns the files of t that the current metadata neither is nor lists in its metadata
// log, however it spells them. now names the current metadata. For a table that is not live it
// returns none: a register may bring the table back with any of them. As long as the version is
// that which trimmed the files, all of them are unnamed.
func (d *Documents) unnamed(ctx context.Context, t Trimmed, now *directory.Found) ([]string, error) {
	switch now {
	case nil:
		return nil, nil
	case t.Table:
		return t.Files, nil
	}
	present, err := d.Of(ctx, RefOf(now.Pointer, now.Storage))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{Normalised(now.Pointer.MetadataLocation): true}
	for _, entry := range present.(*metadata.Document).MetadataLog() {
		names[Normalised(entry.MetadataLocation)] = true
	}
	return slices.DeleteFunc(t.Files, func(file string) bool { return names[Normalised(file)] }), nil
}

// Normalised returns the one spelling of a location, or what is none as it is.
func Normalised(location string) string {
	if spelled, err := storage.Normalise(location); err == nil {
		return spelled
	}
	return location
}

// trims reports whether a table wants metadata files to be deleted that fall out of its metadata
// log.
func trims(document Document) bool {
	wanted, set := document.Property(propDeleteAfterCommit)
	if !set {
		return false
	}
	enabled, err := strconv.ParseBool(wanted)
	return err == nil && enabled
}

// WithinClaims reports whether a file lies within one of a table's claimed locations.
func WithinClaims(claims []string, location string) bool {
	return slices.ContainsFunc(claims, func(claim string) bool {
		inside, err := storage.Within(claim, location)
		return err == nil && inside
	})
}
