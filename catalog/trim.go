package catalog

import (
	"context"
	"slices"
	"strconv"

	"moorage"
	"moorage/catalog/directory"
	"moorage/metadata"
	"moorage/storage"
)

// trimmed are the metadata files that fell out of a table's log with a commit that certainly happened, and are to be deleted.
type trimmed struct {
	table *directory.Found // as it was last known
	files []string
}

// trimmedBy returns what is trimmed by the commit that made next of base: nothing, unless the table wants that.
func trimmedBy(table *directory.Found, base document, next metadataFile) trimmed {
	after, isTable := next.document.(*metadata.Document)
	if !isTable || !trims(after) { // a view has no metadata log
		return trimmed{table: table}
	}
	files := slices.DeleteFunc(after.TrimmedSince(base.(*metadata.Document)), func(file string) bool {
		return file == next.location || !withinClaims(table.Pointer.Claims, file)
	})
	return trimmed{table, files}
}

// deleteTrimmed deletes the files of all, with one read of the pointers, because somebody may have registered one of the files, or one
// that logs them, since, and one call of each storage. A failure leaves files that nothing names.
func (c *Catalog) deleteTrimmed(ctx context.Context, all []trimmed) {
	all = slices.DeleteFunc(all, func(t trimmed) bool { return len(t.files) == 0 })
	if len(all) == 0 {
		return
	}
	known := make([]*directory.Found, len(all))
	for i, t := range all {
		known[i] = t.table
	}
	now, err := c.directory.RereadAll(ctx, known)
	if err != nil {
		c.log.WarnContext(ctx, "could not look whether old metadata files are in use, they stay", "error", err)
		return
	}
	type place struct {
		store storage.Store
		files []string
	}
	places := make(map[string]*place) // by placeKey: a Store need not be comparable
	for i, t := range all {
		unnamed, err := c.unnamed(ctx, t, now[i])
		if err != nil {
			c.log.WarnContext(ctx, "could not look whether old metadata files are in use, they stay", "ident", t.table.Pointer.Identifier(), "error", err)
		}
		if len(unnamed) == 0 {
			continue
		}
		key := directory.PlaceKey(t.table.Place)
		if places[key] == nil {
			places[key] = &place{store: t.table.Storage}
		}
		places[key].files = append(places[key].files, unnamed...)
	}
	for _, p := range places {
		if err := p.store.Delete(ctx, p.files...); err != nil {
			c.log.WarnContext(ctx, "could not delete old metadata files", "files", len(p.files), "error", moorage.OneLine(err.Error()))
		}
	}
}

// unnamed returns those files of t that the table's present version, which now names, neither is nor logs, however it spells them; none
// of a table that is not live, because who takes it back may do so with any of them. As long as the version is that which trimmed them these are all.
func (c *Catalog) unnamed(ctx context.Context, t trimmed, now *directory.Found) ([]string, error) {
	switch now {
	case nil:
		return nil, nil
	case t.table:
		return t.files, nil
	}
	present, err := c.document(ctx, placeOfDocument(now.Pointer, now.Storage))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{normalised(now.Pointer.MetadataLocation): true}
	for _, entry := range present.(*metadata.Document).MetadataLog() {
		names[normalised(entry.MetadataLocation)] = true
	}
	return slices.DeleteFunc(t.files, func(file string) bool { return names[normalised(file)] }), nil
}

// normalised returns the one spelling of a location, or what is none as it is.
func normalised(location string) string {
	if spelled, err := storage.Normalise(location); err == nil {
		return spelled
	}
	return location
}

// trims tells whether a table wants metadata files to be deleted that fall out of its metadata log.
func trims(document document) bool {
	wanted, set := document.Property(propDeleteAfterCommit)
	if !set {
		return false
	}
	enabled, err := strconv.ParseBool(wanted)
	return err == nil && enabled
}

// withinClaims tells whether a file lies within one of a table's claimed locations.
func withinClaims(claims []string, location string) bool {
	return slices.ContainsFunc(claims, func(claim string) bool {
		inside, err := storage.Within(claim, location)
		return err == nil && inside
	})
}
