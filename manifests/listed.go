package manifests

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// UnknownCount stands for a count that a manifest list lacks.
const UnknownCount = -1

// Listed is a manifest as described in a manifest list.
type Listed struct {
	Manifest
	Bytes     int64 // length of the manifest
	Encrypted bool  // the list has a key for it, so this package cannot read it
	// Added, Existing and Deleted are the numbers of the manifest's entries of each status, or
	// UnknownCount.
	Added, Existing, Deleted int32
}

// Live returns a lower bound on the number of the manifest's live files. It counts an unknown
// number as 0.
func (l Listed) Live() int64 { return int64(max(l.Added, 0)) + int64(max(l.Existing, 0)) }

// MayDelete reports whether the manifest may have entries of removed files.
func (l Listed) MayDelete() bool { return l.Deleted != 0 }

// listedRecord holds the members of a list's element that this package reads. Old writers have
// other names for the counts. Lists of format version 1 lack some members. Source: table
// specification, manifest lists.
type listedRecord struct {
	Path     string  `avro:"manifest_path"`
	Bytes    int64   `avro:"manifest_length"`
	Spec     int32   `avro:"partition_spec_id"`
	Content  *int32  `avro:"content"`
	Snapshot *int64  `avro:"added_snapshot_id"`
	Added    *int32  `avro:"added_files_count,alias=added_data_files_count"`
	Existing *int32  `avro:"existing_files_count,alias=existing_data_files_count"`
	Deleted  *int32  `avro:"deleted_files_count,alias=deleted_data_files_count"`
	Key      *[]byte `avro:"key_metadata"`
}

// listedSchema is the schema for reading lists.
var listedSchema = sync.OnceValues(func() (*avro.Schema, error) {
	return avro.SchemaFor[listedRecord](avro.WithName("manifest_file"))
})

// EachListed yields the manifests in a manifest list, in order. It holds one block of the list at a
// time. If it yields an error, it ends. The error comes from body, is ErrTooMuch for a list of more
// than ListedMax manifests, or states that the list is damaged. A list that was truncated between
// two blocks does not count as damaged. So the caller must compare the number of bytes read with
// the length of the file.
func EachListed(body io.Reader) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		reader, err := openStream(body, func(*ocf.Reader) (*avro.Schema, error) { return listedSchema() })
		if err != nil {
			yield(Listed{}, err)
			return
		}
		defer reader.Close()
		names := 0
		for count := 0; ; count++ {
			listed, err := guard(func() (Listed, error) { return decodeListed(reader) })
			if errors.Is(err, io.EOF) {
				return
			}
			if names += len(listed.path); err == nil && (count == ListedMax || names > NamesBytesMax) {
				err = tooMuch("over %d manifests, or %d bytes of their names", ListedMax, NamesBytesMax)
			}
			if !yield(listed, err) || err != nil {
				return
			}
		}
	}
}

// decodeListed reads the next element of a list.
func decodeListed(reader *ocf.Reader) (Listed, error) {
	var r listedRecord
	if err := reader.Decode(&r); err != nil {
		return Listed{}, err
	}
	content := valueOr(r.Content, int32(Data))
	if content != int32(Data) && content != int32(Deletes) {
		return Listed{}, fmt.Errorf("the manifest %s has the content %d, which is not known", r.Path, content)
	}
	return Listed{
		Manifest:  Manifest{path: r.Path, deletes: content == int32(Deletes)},
		Bytes:     r.Bytes,
		Encrypted: r.Key != nil && len(*r.Key) > 0,
		Added:     valueOr(r.Added, UnknownCount), Existing: valueOr(r.Existing, UnknownCount),
		Deleted: valueOr(r.Deleted, UnknownCount),
	}, checkName(r.Path)
}

func valueOr[T any](pointer *T, otherwise T) T {
	if pointer == nil {
		return otherwise
	}
	return *pointer
}
