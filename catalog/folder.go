package catalog

import (
	"context"
	"regexp"
	"strings"

	"moorage"
	"moorage/registry"
	"moorage/storage"
)

// defaultFolderBytesMax is the longest folder of a namespace in which its tables live by default.
// Files lie deeper; file systems end at 4,096 bytes, claims at registry.KeyBytesMax.
const defaultFolderBytesMax = 1024

// folderOf returns the folder for the tables and views of a namespace, which has its levels as
// folders. It returns the location of the warehouse if that path would be longer than
// defaultFolderBytesMax.
func folderOf(warehouse registry.Warehouse, ns moorage.Namespace) string {
	folder := warehouse.Location
	for _, level := range ns {
		folder = storage.Join(folder, storage.EscapeBelow(folder, level))
	}
	if len(folder) > defaultFolderBytesMax {
		return warehouse.Location
	}
	return folder
}

// drawnName is how Trino names the folder of a new table: it ends in a random UUID.
var drawnName = regexp.MustCompile(`^[^/]+-[0-9a-f]{32}$`)

// isDrawn reports whether a client drew the last part of a location that is directly in folder, and
// nothing is there. Trino makes tables so, and writes to them before it commits. Nobody can guess
// such a location, so nobody else has credentials for the table that is committed there. Without
// the look into the storage they would reach what a table that was dropped left behind.
func isDrawn(ctx context.Context, store storage.Store, location, folder string) (bool, error) {
	home, err := storage.Normalise(folder)
	if err != nil {
		return false, err
	}
	name, within := strings.CutPrefix(location, home+"/")
	lister, ok := store.(storage.Lister)
	if !ok || !within || !drawnName.MatchString(name) {
		return false, nil
	}
	page, err := lister.List(ctx, location, "", 1)
	if err != nil {
		return false, moorage.E("catalog.isDrawn", location, moorage.KindUnavailable, err)
	}
	return len(page.Files) == 0 && page.Next == "", nil
}
