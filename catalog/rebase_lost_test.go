package catalog_test

import (
	"errors"
	"testing"

	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/storage"
)

// The manifest lists of an attempt that lost go with its metadata file. They stay with a file that
// somebody has named since.
func TestRebaseListsGoWithTheirFile(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		f := newFixture(t)
		table := f.createVersion("t", 2)
		pointers := must1(f.store.List(f.ctx, registry.TablePointer, "", "", registry.ListLimitMax))(t)
		pointer := must1(registry.Decode[registry.Pointer](pointers[0]))(t)
		folder := table.Document.Location() + "/metadata/"
		file := documents.File{Pointer: pointer.ID, Document: table.Document, Storage: f.files}
		file = must1(f.Documents().Name(directory.Table(), file, documents.File{}))(t)
		lost := documents.Lost{
			File:  file,
			Base:  "another",
			Lists: []storage.File{{Location: folder + "snap-1-0-lost.avro"}},
		}
		must(t, f.files.Create(f.ctx, lost.Lists[0].Location, []byte("list")))
		if named {
			lost.Location = table.MetadataLocation
		} else {
			must(t, f.files.Create(f.ctx, lost.Location, []byte("{}")))
		}
		f.Documents().DeleteLost(f.ctx, lost)
		for _, location := range []string{lost.Location, lost.Lists[0].Location} {
			_, err := f.files.Stat(f.ctx, location)
			if gone := errors.Is(err, storage.ErrNotFound); gone == named {
				t.Errorf("named %t: %s: %v", named, location, err)
			}
		}
	}
}
