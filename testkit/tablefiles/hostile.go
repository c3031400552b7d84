package tablefiles

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/flate"
)

const (
	marker     = "0123456789abcdef"
	blockBytes = 64000

	listSchema = `{"type":"record","name":"manifest_file","fields":[
		{"name":"manifest_path","type":"string","field-id":500},
		{"name":"manifest_length","type":"long","field-id":501},
		{"name":"partition_spec_id","type":"int","field-id":502},
		{"name":"content","type":"int","field-id":517},
		{"name":"sequence_number","type":"long","field-id":515},
		{"name":"min_sequence_number","type":"long","field-id":516},
		{"name":"added_snapshot_id","type":"long","field-id":503},
		{"name":"added_files_count","type":"int","field-id":504},
		{"name":"existing_files_count","type":"int","field-id":505},
		{"name":"deleted_files_count","type":"int","field-id":506},
		{"name":"added_rows_count","type":"long","field-id":512},
		{"name":"existing_rows_count","type":"long","field-id":513},
		{"name":"deleted_rows_count","type":"long","field-id":514}]}`
	manifestSchema = `{"type":"record","name":"manifest_entry","fields":[
		{"name":"status","type":"int","field-id":0},{"name":"snapshot_id","type":["null","long"],"field-id":1},
		{"name":"sequence_number","type":["null","long"],"field-id":3},
		{"name":"file_sequence_number","type":["null","long"],"field-id":4},
		{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
			{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},
			{"name":"file_format","type":"string","field-id":101},
			{"name":"partition","field-id":102,"type":{"type":"record","name":"r102","fields":[]}},
			{"name":"record_count","type":"long","field-id":103},
			{"name":"file_size_in_bytes","type":"long","field-id":104},
			{"name":"split_offsets","field-id":132,"type":["null",{"type":"array","items":"long"}]}]}}]}`
)

// HostileList returns a manifest list with the given number of manifests. In the list each manifest
// has one file.
func HostileList(tb testing.TB, manifests int, name func(i int) string) []byte {
	tb.Helper()
	header := []string{"avro.schema", listSchema, "avro.codec", "deflate", "format-version", "2"}
	return hostileFile(tb, header, manifests,
		func(out []byte, i int) []byte {
			out = appendText(out, name(i))
			for _, n := range []int64{4096, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0} {
				out = binary.AppendVarint(out, n)
			}
			return out
		})
}

// HostileManifest returns a manifest with the given number of data files, each with splits split
// offsets.
func HostileManifest(tb testing.TB, files, splits int, name func(i int) string) []byte {
	tb.Helper()
	header := []string{
		"avro.schema", manifestSchema, "avro.codec", "deflate", "format-version", "2", "content", "data",
		"schema", `{"type":"struct","schema-id":0,"fields":[]}`, "partition-spec", "[]", "partition-spec-id", "0",
	}
	offsets := bytes.Repeat([]byte{0}, splits)
	return hostileFile(tb, header, files, func(out []byte, i int) []byte {
		out = append(out, 2, 2, 2, 0, 0, 0) // added, by snapshot 1, with inherited sequence numbers, data
		out = appendText(out, name(i))
		out = appendText(out, "PARQUET")
		out = binary.AppendVarint(binary.AppendVarint(out, 1), 4)
		if splits == 0 {
			return append(out, 0)
		}
		out = binary.AppendVarint(append(out, 2), int64(splits))
		return append(append(out, offsets...), 0)
	})
}

// hostileFile returns an Avro file of records.
func hostileFile(tb testing.TB, header []string, records int, record func(out []byte, i int) []byte) []byte {
	tb.Helper()
	out := binary.AppendVarint([]byte("Obj\x01"), int64(len(header)/2))
	for _, text := range header {
		out = appendText(out, text)
	}
	out = append(append(out, 0), marker...)
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		tb.Fatal(err)
	}
	var block []byte
	for i, count := 0, int64(0); i < records; i++ {
		block, count = record(block, i), count+1
		if len(block) < blockBytes && i < records-1 {
			continue
		}
		packed.Reset()
		writer.Reset(&packed)
		if _, err := writer.Write(block); err != nil {
			tb.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			tb.Fatal(err)
		}
		out = binary.AppendVarint(binary.AppendVarint(out, count), int64(packed.Len()))
		out = append(append(out, packed.Bytes()...), marker...)
		block, count = block[:0], 0
	}
	return out
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendVarint(out, int64(len(text))), text...)
}
