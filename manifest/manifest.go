// Package manifest reads the manifest lists and manifests of Iceberg tables: which files a snapshot
// is made of. It reads what clients wrote, so it turns each fault of a file into an error. It knows
// no storage, and it decides nothing about a table.
//
// It is the only package that imports the manifest readers of iceberg-go.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/iceberg-go"
)

// Manifest is a manifest as a snapshot names it. It is immutable, and safe for concurrent use.
type Manifest struct{ file iceberg.ManifestFile }

// unknownVersion stands for "the list does not say": a reader takes the version that the manifest
// itself has, up to this one.
const unknownVersion = 3

// Unlisted returns the manifest at path of a snapshot that has no manifest list, as tables of
// format version 1 may have them. Source: table specification, snapshots, field manifests.
func Unlisted(path string, snapshotID int64) Manifest {
	return Manifest{iceberg.NewManifestFile(unknownVersion, path, 0, 0, snapshotID).Build()}
}

// ReadList returns the manifests that a manifest list names, in its order. The error is that of
// body, or says that the list is damaged.
func ReadList(body io.Reader) ([]Manifest, error) {
	files, err := guard(func() ([]iceberg.ManifestFile, error) { return iceberg.ReadManifestList(body) })
	if err != nil {
		return nil, err
	}
	manifests := make([]Manifest, len(files))
	for i, file := range files {
		manifests[i] = Manifest{file}
	}
	return manifests, nil
}

// Path returns where the manifest is stored.
func (m Manifest) Path() string { return m.file.FilePath() }

// Files yields the path of each data file and delete file that the manifest names in body, whether
// it is live or removed. It yields at most one error, and that last: the error of body, or that the
// manifest is damaged.
func (m Manifest) Files(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for entry, err := range m.entries(body) {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(entry.DataFile().FilePath(), nil) {
				return
			}
		}
	}
}

// entries yields the entries of the manifest. It reads only their paths and their status.
func (m Manifest) entries(body io.Reader) iter.Seq2[iceberg.ManifestEntry, error] {
	return func(yield func(iceberg.ManifestEntry, error) bool) {
		reader, err := guard(func() (*iceberg.ManifestReader, error) {
			return iceberg.NewManifestReaderWithProjection(m.file, body, iceberg.ManifestEntryProjection{})
		})
		if err != nil {
			yield(nil, err)
			return
		}
		defer reader.Close()
		for {
			entry, err := guard(reader.ReadEntry)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// guard turns a panic of the Avro decoder, to which any client can feed any file, into an error.
func guard[T any](decode func() (T, error)) (value T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("decode: %v", reason)
		}
	}()
	return decode()
}
