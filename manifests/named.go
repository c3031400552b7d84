package manifests

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// Manifest is a reference to a manifest, from a snapshot or its manifest list. It is immutable, and
// safe for concurrent use.
type Manifest struct {
	path    string
	deletes bool
}

// formatVersionMax is the last known format version.
const formatVersionMax = 3

// Unlisted returns the manifest at path of a snapshot without a manifest list, which tables of
// format version 1 may have. Source: table specification, snapshots, field manifests.
func Unlisted(path string) Manifest { return Manifest{path: path} }

// Path returns the location of the manifest.
func (m Manifest) Path() string { return m.path }

// Deletes reports whether the manifest lists delete files instead of data files.
func (m Manifest) Deletes() bool { return m.deletes }

// NamedFile is one file in a manifest.
type NamedFile struct {
	Path    string
	Removed bool // the snapshot that added the manifest removed the file; otherwise the file is live
}

// namedEntry holds the members of an entry that Entries reads.
type namedEntry struct {
	Status int32 `avro:"status"`
	File   struct {
		Content int32  `avro:"content"`
		Path    string `avro:"file_path"`
	} `avro:"data_file"`
}

// Entries yields the files listed in the manifest in body, with their status. If it yields an
// error, it ends. The error comes from body, or is ErrTooMuch for a manifest of more than
// EntriesMax files. Entries also yields an error for a damaged manifest, and for a manifest whose
// content (data or deletes) differs from its content in the list.
func (m Manifest) Entries(body io.Reader) iter.Seq2[NamedFile, error] {
	return func(yield func(NamedFile, error) bool) {
		for e, err := range decodeEntries[namedEntry](m, body, namedSchema) {
			if err == nil {
				err = m.check(e.Status, e.File.Content, e.File.Path)
			}
			if !yield(NamedFile{e.File.Path, e.Status == int32(Deleted)}, err) || err != nil {
				return
			}
		}
	}
}

// decodeEntries yields the entries of a manifest as values of type E. choose returns the schema for
// reading them. decodeEntries ends with the first error; see Entries.
func decodeEntries[E any](m Manifest, body io.Reader,
	choose func(*ocf.Reader) (*avro.Schema, error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var e, none E
		reader, err := openStream(body, choose)
		if err == nil {
			defer reader.Close()
			err = m.checkHeader(reader.Metadata())
		}
		for count := 0; err == nil; count++ {
			e = none
			_, err = guard(func() (struct{}, error) { return struct{}{}, reader.Decode(&e) })
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && count == EntriesMax {
				err = tooMuch("over %d files", EntriesMax)
			}
			if err == nil && !yield(e, nil) {
				return
			}
		}
		yield(none, err)
	}
}

// namedSchema returns the schema for reading the entries of a manifest, which is a part of the
// manifest's own schema.
func namedSchema(reader *ocf.Reader) (*avro.Schema, error) {
	root, _, err := entrySchema(reader, "content", "file_path")
	if err != nil {
		return nil, err
	}
	return root.Schema()
}

// entrySchema returns the part of a manifest's own schema with the status of an entry and the given
// members of its file. file is the schema of the file, within root.
func entrySchema(reader *ocf.Reader, members ...string) (root avro.SchemaNode, file *avro.SchemaNode, err error) {
	root = *reader.Schema().Root()
	root.Fields = fieldsNamed(root.Fields, "status", "data_file")
	for i := range root.Fields {
		if root.Fields[i].Name == "data_file" {
			file = &root.Fields[i].Type
			file.Fields = fieldsNamed(file.Fields, members...)
			if len(root.Fields) == 2 && len(file.Fields) > 0 {
				return root, file, nil
			}
		}
	}
	return root, nil, errors.New("it is no manifest: its entries have no status, or no file")
}

// fieldsNamed returns the fields with one of the names, in a new slice.
func fieldsNamed(fields []avro.SchemaField, names ...string) (found []avro.SchemaField) {
	for _, field := range fields {
		if slices.Contains(names, field.Name) {
			found = append(found, field)
		}
	}
	return found
}

// checkHeader refuses a manifest if its format version is unknown, or if the content in its header
// differs from that of m. Headers of format version 1 may lack both.
func (m Manifest) checkHeader(header map[string][]byte) error {
	version := 1
	if text := string(header["format-version"]); text != "" {
		var err error
		if version, err = strconv.Atoi(text); err != nil || version < 1 || version > formatVersionMax {
			return fmt.Errorf("the manifest has the format version %.20q, which is not known", text)
		}
	}
	want := "data"
	if m.deletes {
		want = "deletes"
	}
	if got := string(header["content"]); got != want && (got != "" || version > 1 || m.deletes) {
		return fmt.Errorf("the manifest has the content %.20q, and %q in its list", got, want)
	}
	return nil
}

// check refuses an entry that a manifest of its kind cannot have.
func (m Manifest) check(status, content int32, path string) error {
	switch {
	case status < int32(Existing) || status > int32(Deleted):
		return fmt.Errorf("an entry has the status %d, which is not known", status)
	case content < int32(Data) || content > int32(EqualityDeletes):
		return fmt.Errorf("a file has the content %d, which is not known", content)
	case (content != int32(Data)) != m.deletes:
		return fmt.Errorf("a file of the content %d is in a manifest of another one", content)
	}
	return checkName(path)
}

// guard turns a panic of the Avro decoder into an error, because the decoded files are written by
// clients.
func guard[T any](decode func() (T, error)) (value T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("decode: %v", reason)
		}
	}()
	return decode()
}
