package manifests

import (
	"fmt"
	"io"
	"iter"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// DescribedFile is an entry of a manifest, with the facts about the file that users want to see.
type DescribedFile struct {
	MeasuredFile

	Status Status
	Path   string
	Format string // as written, at most formatBytesMax
	// Lower and Upper hold the bounds of columns with statistics, in the order of the manifest.
	// Each has the id of its column. The bounds are in the form of the specification's "Binary
	// single-value serialization", and can be wider than the values.
	Lower, Upper []Bound
}

// Bound is a bound of the values of a column in one file.
type Bound struct {
	ID    int32  `avro:"key"`
	Value []byte `avro:"value"`
}

// formatBytesMax is the maximum length of a format's name in a DescribedFile.
const formatBytesMax = 20

// describedEntry holds the members of an entry that Describe reads.
type describedEntry struct {
	Status int32 `avro:"status"`
	File   struct {
		Content   int32    `avro:"content"`
		Path      string   `avro:"file_path"`
		Format    string   `avro:"file_format"`
		Rows      int64    `avro:"record_count"`
		Bytes     int64    `avro:"file_size_in_bytes"`
		Partition any      `avro:"partition"`
		Lower     *[]Bound `avro:"lower_bounds"`
		Upper     *[]Bound `avro:"upper_bounds"`
	} `avro:"data_file"`
}

// Describe yields the files listed in the manifest in body, including removed ones. It has the
// limits and errors of Entries. Names of partitions have the same limit as names of files.
func (m Manifest) Describe(body io.Reader) iter.Seq2[DescribedFile, error] {
	return func(yield func(DescribedFile, error) bool) {
		var fields []partitionField
		choose := func(reader *ocf.Reader) (*avro.Schema, error) {
			root, file, err := entrySchema(reader, "content", "file_path", "file_format", "record_count",
				"file_size_in_bytes", "partition", "lower_bounds", "upper_bounds")
			if err != nil {
				return nil, err
			}
			fields = partitionFields(file, reader.Metadata()["partition-spec"])
			return root.Schema()
		}
		for e, err := range decodeEntries[describedEntry](m, body, choose) {
			made := DescribedFile{
				Status: Status(e.Status), Path: e.File.Path, Format: e.File.Format,
				MeasuredFile: MeasuredFile{Content: Content(e.File.Content), Rows: e.File.Rows, Bytes: e.File.Bytes},
			}
			if err == nil {
				made.Partition = partitionName(fields, e.File.Partition)
				err = m.check(e.Status, e.File.Content, made.Path)
			}
			if err == nil {
				err = checkName(made.Partition)
			}
			if err == nil && (made.Rows < 0 || made.Bytes < 0 || len(made.Format) > formatBytesMax) {
				err = fmt.Errorf("a file has %d rows, %d bytes and the format %.20q", made.Rows, made.Bytes,
					made.Format)
			}
			if e.File.Lower != nil {
				made.Lower = *e.File.Lower
			}
			if e.File.Upper != nil {
				made.Upper = *e.File.Upper
			}
			if !yield(made, err) || err != nil {
				return
			}
		}
	}
}
