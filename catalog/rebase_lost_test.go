package catalog_test

import (
	"errors"
	"testing"

	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// The manifest lists of a lost attempt are deleted together with its metadata file. They stay if
// the file has been registered in the meantime.
func TestRebaseListsGoWithTheirFile(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		f := catalogkit.New(t)
		table := createVersion(f, "t", 2)
		pointers := must1(f.Store.List(f.Ctx, registry.TablePointer, "", "", registry.ListLimitMax))(t)
		pointer := must1(registry.Decode[registry.Pointer](pointers[0]))(t)
		folder := table.Document.Location() + "/metadata/"
		file := documents.File{Pointer: pointer.ID, Document: table.Document, Storage: f.Files}
		file = must1(f.Documents().Name(directory.Table(), file, documents.File{}))(t)
		lost := documents.Lost{
			File:  file,
			Base:  "another",
			Lists: []storage.File{{Location: folder + "snap-1-0-lost.avro"}},
		}
		must(t, f.Files.Create(f.Ctx, lost.Lists[0].Location, []byte("list")))
		if named {
			lost.Location = table.MetadataLocation
		} else {
			must(t, f.Files.Create(f.Ctx, lost.Location, []byte("{}")))
		}
		f.Documents().DeleteLost(f.Ctx, lost)
		for _, location := range []string{lost.Location, lost.Lists[0].Location} {
			_, err := f.Files.Stat(f.Ctx, location)
			if gone := errors.Is(err, storage.ErrNotFound); gone == named {
				t.Errorf("named %t: %s: %v", named, location, err)
			}
		}
	}
}
