package catalog

import (
	"context"
	"slices"
	"strconv"

	"moorage/metadata"
	"moorage/storage"
)

// trimmed are the metadata files that fell out of a table's log with a commit that certainly happened, and are to be deleted.
type trimmed struct {
	table *resolved // as it was last known
	files []string
}

// trimmedBy returns what is trimmed by the commit that made next of base: nothing, unless the table wants that.
func trimmedBy(table *resolved, base document, next metadataFile) trimmed {
	after, isTable := next.document.(*metadata.Document)
	if !isTable || !trims(after) { // a view has no metadata log
		return trimmed{table: table}
	}
	files := slices.DeleteFunc(after.TrimmedSince(base.(*metadata.Document)), func(file string) bool {
		return file == next.location || !withinClaims(table.pointer.Claims, file)
	})
	return trimmed{table, files}
}

// deleteTrimmed deletes the files of all, with one read of the pointers, because somebody may have registered one of the files
// since, and one call of each storage. A failure leaves files that nothing names.
func (c *Catalog) deleteTrimmed(ctx context.Context, all []trimmed) {
	all = slices.DeleteFunc(all, func(t trimmed) bool { return len(t.files) == 0 })
	if len(all) == 0 {
		return
	}
	known := make([]*resolved, len(all))
	for i, t := range all {
		known[i] = t.table
	}
	now, err := c.readPointers(ctx, known)
	if err != nil {
		c.log.WarnContext(ctx, "could not look whether old metadata files are in use, they stay", "error", err)
		return
	}
	files := make(map[storage.Store][]string)
	for i, t := range all {
		if now[i] != nil && !slices.Contains(t.files, now[i].pointer.MetadataLocation) {
			files[t.table.storage] = append(files[t.table.storage], t.files...)
		}
	}
	for store, locations := range files {
		if err := store.Delete(ctx, locations...); err != nil {
			c.log.WarnContext(ctx, "could not delete old metadata files", "files", len(locations), "error", err)
		}
	}
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
