package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/apache/iceberg-go"
)

// Authored is a snapshot whose files the server itself adds, as for the demo. Clients write all
// other manifests. Encode uses iceberg-go, for format version 2.
type Authored struct {
	Schema, Spec []byte // JSON, as in the table's metadata
	SnapshotID   int64
	Parent       *int64 // nil if the table has no snapshot
	Sequence     int64  // sequence number of the snapshot
	// Base is the manifest list of the parent. It is nil without a parent.
	Base []byte
	// Manifest is the location at which the new manifest will be.
	Manifest string
	Files    []AuthoredFile
}

// AuthoredFile is a data file, or a file of position deletes. A snapshot has files of one kind.
type AuthoredFile struct {
	Path        string
	Deletes     bool
	Rows, Bytes int64
	Partition   map[int]any // by partition field id; an int32 for a month
	Columns     []AuthoredColumn
}

// AuthoredColumn holds the metrics of a column. Lower and Upper are Go values that iceberg-go
// accepts as literals. Both are nil without bounds.
type AuthoredColumn struct {
	ID                   int
	Bytes, Values, Nulls int64
	Lower, Upper         any
}

// Encode returns the manifest, and the manifest list of the snapshot.
func (a Authored) Encode() (manifest, list []byte, err error) {
	var schema iceberg.Schema
	if err := json.Unmarshal(a.Schema, &schema); err != nil {
		return nil, nil, fmt.Errorf("read the schema: %w", err)
	}
	var spec iceberg.PartitionSpec
	if err := json.Unmarshal(a.Spec, &spec); err != nil {
		return nil, nil, fmt.Errorf("read the spec: %w", err)
	}
	const version = 2
	content, fileContent := iceberg.ManifestContentData, iceberg.EntryContentData
	if a.Files[0].Deletes {
		content, fileContent = iceberg.ManifestContentDeletes, iceberg.EntryContentPosDeletes
	}
	var out bytes.Buffer
	writer, err := iceberg.NewManifestWriter(version, &out, spec, &schema, a.SnapshotID,
		iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, nil, fmt.Errorf("begin a manifest: %w", err)
	}
	for _, file := range a.Files {
		data, err := file.build(spec, fileContent)
		if err != nil {
			return nil, nil, fmt.Errorf("describe %s: %w", file.Path, err)
		}
		entry := iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &a.SnapshotID, nil, nil, data)
		if err := writer.Add(entry); err != nil {
			return nil, nil, fmt.Errorf("add %s: %w", file.Path, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, nil, fmt.Errorf("end the manifest: %w", err)
	}
	added, err := writer.ToManifestFile(a.Manifest, int64(out.Len()), iceberg.WithManifestFileContent(content))
	if err != nil {
		return nil, nil, fmt.Errorf("describe the manifest: %w", err)
	}
	manifests := []iceberg.ManifestFile{added}
	if a.Base != nil {
		base, err := iceberg.ReadManifestList(bytes.NewReader(a.Base))
		if err != nil {
			return nil, nil, fmt.Errorf("read the manifest list of the parent: %w", err)
		}
		manifests = append(manifests, base...)
	}
	var listed bytes.Buffer
	err = iceberg.WriteManifestList(version, &listed, a.SnapshotID, a.Parent, &a.Sequence, 0, manifests)
	if err != nil {
		return nil, nil, fmt.Errorf("write the manifest list: %w", err)
	}
	return out.Bytes(), listed.Bytes(), nil
}

func (f AuthoredFile) build(spec iceberg.PartitionSpec, content iceberg.ManifestEntryContent) (
	iceberg.DataFile, error) {
	builder, err := iceberg.NewDataFileBuilder(spec, content, f.Path, iceberg.ParquetFile, maps.Clone(f.Partition),
		nil, nil, f.Rows, f.Bytes)
	if err != nil {
		return nil, err
	}
	sizes, values, nulls := map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for _, c := range f.Columns {
		sizes[c.ID], values[c.ID], nulls[c.ID] = c.Bytes, c.Values, c.Nulls
		if c.Lower == nil || c.Upper == nil {
			continue
		}
		if lower[c.ID], err = encodeBound(c.Lower); err != nil {
			return nil, err
		}
		if upper[c.ID], err = encodeBound(c.Upper); err != nil {
			return nil, err
		}
	}
	return builder.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).
		LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets([]int64{4}).Build(), nil
}

// encodeBound returns the single-value serialization of a bound.
func encodeBound(value any) ([]byte, error) {
	var literal iceberg.Literal
	switch v := value.(type) {
	case int32:
		literal = iceberg.NewLiteral(v)
	case int64:
		literal = iceberg.NewLiteral(v)
	case float64:
		literal = iceberg.NewLiteral(v)
	case string:
		literal = iceberg.NewLiteral(v)
	default:
		return nil, fmt.Errorf("no literal for %T", value)
	}
	return literal.MarshalBinary()
}
