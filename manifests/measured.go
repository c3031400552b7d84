package manifests

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// MeasuredFile is a live file in a manifest, with its size.
type MeasuredFile struct {
	Content     Content
	Rows, Bytes int64
	// Partition is the partition of the file, in the form in which engines name folders:
	// "departed_month=2026-11/flag=NL". It is empty in a table without partitions.
	Partition string
}

// measuredEntry holds the members of an entry that Measure reads.
type measuredEntry struct {
	Status int32 `avro:"status"`
	File   struct {
		Content   int32 `avro:"content"`
		Rows      int64 `avro:"record_count"`
		Bytes     int64 `avro:"file_size_in_bytes"`
		Partition any   `avro:"partition"`
	} `avro:"data_file"`
}

// Measure yields the live files listed in the manifest in body, with their sizes. It has the limits
// and errors of Entries. Names of partitions have the same limit as names of files.
func (m Manifest) Measure(body io.Reader) iter.Seq2[MeasuredFile, error] {
	return func(yield func(MeasuredFile, error) bool) {
		var fields []partitionField
		choose := func(reader *ocf.Reader) (*avro.Schema, error) {
			root, file, err := entrySchema(reader, "content", "record_count", "file_size_in_bytes", "partition")
			if err != nil {
				return nil, err
			}
			fields = partitionFields(file, reader.Metadata()["partition-spec"])
			return root.Schema()
		}
		for e, err := range decodeEntries[measuredEntry](m, body, choose) {
			file := MeasuredFile{Content: Content(e.File.Content), Rows: e.File.Rows, Bytes: e.File.Bytes}
			if err == nil {
				file.Partition = partitionName(fields, e.File.Partition)
				err = m.check(e.Status, e.File.Content, file.Partition)
			}
			if err == nil && (file.Rows < 0 || file.Bytes < 0) {
				err = fmt.Errorf("a file has %d rows and %d bytes", file.Rows, file.Bytes)
			}
			if err == nil && e.Status == int32(Deleted) {
				continue
			}
			if !yield(file, err) || err != nil {
				return
			}
		}
	}
}

// partitionField is a field of the partition of a manifest's files.
type partitionField struct {
	inFile    string // its name in the manifest, which has only letters and digits
	Name      string `json:"name"`
	Transform string `json:"transform"`
}

// partitionFields returns the fields of the partition in the schema of a file. spec is the
// partition spec in the header of the manifest: a JSON array in the order of the fields. Unless
// spec covers every field, the fields have no transforms, and their names come from the schema.
func partitionFields(file *avro.SchemaNode, spec []byte) []partitionField {
	partition := fieldsNamed(file.Fields, "partition")
	if len(partition) == 0 {
		return nil
	}
	inFile := partition[0].Type.Fields
	var fields []partitionField
	if err := json.Unmarshal(spec, &fields); err != nil || len(fields) != len(inFile) {
		fields = make([]partitionField, len(inFile))
	}
	for i, field := range inFile {
		if fields[i].inFile = field.Name; fields[i].Name == "" {
			fields[i].Name = field.Name
		}
	}
	return fields
}

// partitionName returns the name of a partition. Source: Java PartitionSpec.partitionToPath.
func partitionName(fields []partitionField, partition any) string {
	values, _ := partition.(map[string]any)
	var name strings.Builder
	for i, field := range fields {
		if i > 0 {
			name.WriteByte('/')
		}
		name.WriteString(escaped(field.Name))
		name.WriteByte('=')
		name.WriteString(escaped(partitionValue(field.Transform, values[field.inFile])))
	}
	return name.String()
}

// partitionValue returns a value of a partition as readable text. Source: table specification,
// partition transforms: years, months, days and hours are counted from 1970 on.
func partitionValue(transform string, value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return v
	case []byte:
		return hex.EncodeToString(v)
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339Nano)
	case int32:
		return countedValue(transform, int64(v))
	case int64:
		return countedValue(transform, v)
	}
	return fmt.Sprint(value)
}

// countedValue returns a number of a partition, which may count years, months, days or hours.
func countedValue(transform string, n int64) string {
	const datesMax = 1 << 31 // a larger number in a damaged manifest is not a date
	if n > datesMax || n < -datesMax {
		return fmt.Sprint(n)
	}
	at := time.Unix(0, 0).UTC()
	switch transform {
	case "year":
		return fmt.Sprint(int64(at.Year()) + n)
	case "month":
		return at.AddDate(0, int(n), 0).Format("2006-01")
	case "day":
		return at.AddDate(0, 0, int(n)).Format(time.DateOnly)
	case "hour":
		return time.Unix(n*int64(time.Hour/time.Second), 0).UTC().Format("2006-01-02-15")
	}
	return fmt.Sprint(n)
}

// escaped returns text as escaped by engines in the name of a folder. Source: Java
// PartitionSpec.escape, which is the form encoding of URLs.
func escaped(text string) string {
	const plain = "-_.~"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(plain, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
