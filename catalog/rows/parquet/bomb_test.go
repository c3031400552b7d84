//go:build !race

package parquet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"moorage/catalog/rows/parquet"
)

// written is a file that a test writes by hand.
type written struct{ bytes.Buffer }

func newWritten() *written {
	w := &written{}
	w.WriteString("PAR1")
	return w
}

func (w *written) thrift(t *testing.T, v any) {
	t.Helper()
	text, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(text)
}

// page writes a page with a body. Its header declares unpacked bytes and values.
func (w *written) page(t *testing.T, kind format.PageType, encoding format.Encoding, unpacked, values int32, body []byte) {
	t.Helper()
	h := format.PageHeader{Type: kind, UncompressedPageSize: unpacked, CompressedPageSize: int32(len(body))}
	switch kind {
	case format.DataPage:
		h.DataPageHeader.V = format.DataPageHeader{NumValues: values, Encoding: encoding,
			DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
		h.DataPageHeader.Valid = true
	default:
		h.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: values, Encoding: encoding}
		h.DictionaryPageHeader.Valid = true
	}
	w.thrift(t, h)
	w.Write(body)
}

// columnOf is a column of a file. All pages of the file belong to it.
type columnOf struct {
	kind       format.Type
	repetition format.FieldRepetitionType
	codec      format.CompressionCodec
	values     int64
	length     int32 // of each value, if the type has a fixed length
}

// finish writes the footer of a file with the given number of equal columns, which share all pages.
func (w *written) finish(t *testing.T, c columnOf, columns int, rows int64) []byte {
	t.Helper()
	meta := format.FileMetaData{Version: 2, NumRows: rows}
	root := format.SchemaElement{Name: "root"}
	root.NumChildren.V, root.NumChildren.Valid = int32(columns), true
	meta.Schema = append(meta.Schema, root)
	group := format.RowGroup{NumRows: rows}
	for i := range columns {
		name := strings.Repeat("c", i+1)
		e := format.SchemaElement{Name: name}
		e.Type.V, e.Type.Valid = c.kind, true
		e.TypeLength.V, e.TypeLength.Valid = c.length, c.length > 0
		e.RepetitionType.V, e.RepetitionType.Valid = c.repetition, true
		meta.Schema = append(meta.Schema, e)
		group.Columns = append(group.Columns, format.ColumnChunk{MetaData: format.ColumnMetaData{
			Type: c.kind, PathInSchema: []string{name}, Codec: c.codec, NumValues: c.values,
			TotalCompressedSize: int64(w.Len() - 4), DataPageOffset: 4,
		}})
	}
	meta.RowGroups = []format.RowGroup{group}
	start := w.Len()
	w.thrift(t, meta)
	_ = binary.Write(w, binary.LittleEndian, uint32(w.Len()-start))
	w.WriteString("PAR1")
	return w.Bytes()
}

// raw writes a footer as is.
func (w *written) raw(footer []byte) []byte {
	w.Write(footer)
	_ = binary.Write(w, binary.LittleEndian, uint32(len(footer)))
	w.WriteString("PAR1")
	return w.Bytes()
}

// Files of a few bytes that declare gigabytes are refused, or read in little memory.
func TestBombs(t *testing.T) {
	const bytesMax = 80 << 20 // 64 MiB of pages, and the rest
	zeros := make([]byte, 16<<20)
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	small := packer.EncodeAll(zeros, nil)
	run := func(width int, count uint64, value byte) []byte { // preceded by its length
		b := binary.AppendUvarint(nil, count<<1)
		if width > 0 {
			b = append(b, value)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	optional := func(c columnOf) columnOf { c.repetition = format.Optional; return c }
	repeated := func(c columnOf) columnOf { c.repetition = format.Repeated; return c }
	ints := columnOf{kind: format.Int32, codec: format.Uncompressed}
	texts := columnOf{kind: format.ByteArray, codec: format.Zstd}
	fixed := columnOf{kind: format.FixedLenByteArray, codec: format.Zstd, values: 1, length: 16 << 20}
	for _, tt := range []struct {
		name string
		file func(t *testing.T, w *written) []byte
		err  error // nil if the file is read
	}{
		{"a page of 2 GB", func(t *testing.T, w *written) []byte {
			w.page(t, format.DataPage, format.Plain, 1<<31-1, 10, small)
			c := texts
			c.values = 10
			return w.finish(t, c, 1, 10)
		}, parquet.ErrTooLarge},
		{"a page of two billion nulls", func(t *testing.T, w *written) []byte {
			body := run(1, 1<<31-1, 0)
			w.page(t, format.DataPage, format.Plain, int32(len(body)), 1<<31-1, body)
			c := optional(ints)
			c.values = 1<<31 - 1
			return w.finish(t, c, 1, 1<<31-1)
		}, parquet.ErrTooLarge},
		{"pages of millions of nulls", func(t *testing.T, w *written) []byte {
			c := optional(ints)
			for range 4 {
				body := run(1, 1<<22, 0)
				w.page(t, format.DataPage, format.Plain, int32(len(body)), 1<<22, body)
				c.values += 1 << 22
			}
			return w.finish(t, c, 1, c.values)
		}, nil},
		{"a list of millions", func(t *testing.T, w *written) []byte {
			levels := append(run(1, 1<<22, 1), run(1, 1<<22, 1)...)
			body := append(levels, 0) // indexes of no bits
			body = binary.AppendUvarint(body, 1<<22<<1)
			w.page(t, format.DictionaryPage, format.Plain, 4, 1, []byte{1, 2, 3, 4})
			w.page(t, format.DataPage, format.RLEDictionary, int32(len(body)), 1<<22, body)
			c := repeated(ints)
			c.values = 1 << 22
			return w.finish(t, c, 1, 1)
		}, nil},
		{"dictionaries of 16 MiB in many columns", func(t *testing.T, w *written) []byte {
			w.page(t, format.DictionaryPage, format.Plain, 16<<20, 1<<22, small)
			index := packer.EncodeAll([]byte{0, 20}, nil)
			w.page(t, format.DataPage, format.RLEDictionary, 2, 10, index)
			c := texts
			c.values = 10
			return w.finish(t, c, 50, 10)
		}, parquet.ErrTooLarge},
		{"a dictionary of more values than bytes", func(t *testing.T, w *written) []byte {
			w.page(t, format.DictionaryPage, format.Plain, 16<<20, 1<<26-1, small)
			c := texts
			c.values = 1
			return w.finish(t, c, 1, 1)
		}, parquet.ErrDamaged},
		{"nulls of values of 16 MiB in many columns", func(t *testing.T, w *written) []byte {
			body := append(run(1, 1, 0), 0)
			w.page(t, format.DataPage, format.ByteStreamSplit, int32(len(body)), 1, body)
			c := optional(fixed)
			c.codec = format.Uncompressed
			return w.finish(t, c, 50, 1)
		}, parquet.ErrDamaged},
		{"values of 16 MiB in many columns", func(t *testing.T, w *written) []byte {
			w.page(t, format.DataPage, format.ByteStreamSplit, 16<<20, 1, small)
			return w.finish(t, fixed, 50, 1)
		}, parquet.ErrTooLarge},
		{"snappy that declares 4 GB", func(t *testing.T, w *written) []byte {
			body := append(binary.AppendUvarint(nil, 1<<32-1), snappy.Encode(nil, zeros[:100])...)
			w.page(t, format.DataPage, format.Plain, 100, 10, body)
			c := texts
			c.codec, c.values = format.Snappy, 10
			return w.finish(t, c, 1, 10)
		}, parquet.ErrDamaged},
		{"a page that unpacks to more", func(t *testing.T, w *written) []byte {
			w.page(t, format.DataPage, format.Plain, 100, 10, small)
			c := texts
			c.values = 10
			return w.finish(t, c, 1, 10)
		}, parquet.ErrDamaged},
		{"deltas of a billion lengths", func(t *testing.T, w *written) []byte {
			body := []byte{0x80, 1, 4}
			body = append(binary.AppendUvarint(body, 1<<30), 0)
			w.page(t, format.DataPage, format.DeltaLengthByteArray, int32(len(body)), 10, body)
			c := texts
			c.codec, c.values = format.Uncompressed, 10
			return w.finish(t, c, 1, 10)
		}, parquet.ErrDamaged},
		{"a page header that never ends", func(t *testing.T, w *written) []byte {
			w.Write(bytes.Repeat([]byte{0x1c}, 4<<20)) // nested structures
			c := texts
			c.values = 10
			return w.finish(t, c, 1, 10)
		}, parquet.ErrDamaged},
		{"a schema of millions of elements", func(_ *testing.T, w *written) []byte {
			const elements = 4 << 20
			footer := append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, elements)...)
			return w.raw(append(footer, make([]byte, elements)...))
		}, parquet.ErrTooLarge},
		{"millions of row groups", func(_ *testing.T, w *written) []byte {
			const groups = 4 << 20
			footer := append([]byte{0x49, 0xfc}, binary.AppendUvarint(nil, groups)...)
			return w.raw(append(footer, make([]byte, groups)...))
		}, parquet.ErrTooLarge},
		{"a list that declares two billion items", func(_ *testing.T, w *written) []byte {
			return w.raw(append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1<<31-1)...))
		}, parquet.ErrDamaged},
		{"a footer of lists in lists", func(_ *testing.T, w *written) []byte {
			return w.raw(append([]byte{0xf9}, bytes.Repeat([]byte{0x19}, 4<<20)...))
		}, parquet.ErrDamaged},
		{"a schema that nests deep", func(t *testing.T, w *written) []byte {
			meta := format.FileMetaData{Version: 2}
			for range 10_000 {
				e := format.SchemaElement{Name: "g"}
				e.NumChildren.V, e.NumChildren.Valid = 1, true
				e.RepetitionType.V, e.RepetitionType.Valid = format.Optional, true
				meta.Schema = append(meta.Schema, e)
			}
			footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
			if err != nil {
				t.Fatal(err)
			}
			return w.raw(footer)
		}, parquet.ErrDamaged},
		{"a footer longer than the file", func(_ *testing.T, w *written) []byte {
			_ = binary.Write(w, binary.LittleEndian, uint32(1<<32-1))
			w.WriteString("PAR1")
			return w.Bytes()
		}, parquet.ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			content := tt.file(t, newWritten())
			in := input(content, 64<<20)
			highest := uint64(0)
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			count := 0
			in.Alive = func() error {
				if count++; count%64 == 1 {
					runtime.ReadMemStats(&now)
					highest = max(highest, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
				}
				return nil
			}
			f, err := parquet.Open(in)
			if err == nil {
				err = consume(f)
				f.Close()
			}
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
			if !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if highest > bytesMax+uint64(2*len(content)) {
				t.Errorf("a file of %d bytes took %d bytes of memory", len(content), highest)
			}
		})
	}
}

// consume reads all values of all columns one by one, and keeps none.
func consume(f *parquet.File) error {
	var columns []*parquet.Column
	for _, n := range f.Root.Children {
		columns = append(columns, f.Column(n))
	}
	for group := range f.Groups() {
		if _, err := f.Enter(group); err != nil {
			return err
		}
		for left := len(columns); left > 0; {
			left = len(columns)
			for _, c := range columns {
				if _, _, err := c.Peek(); err != nil {
					if errors.Is(err, io.EOF) {
						left--
						continue
					}
					return err
				}
				if _, err := c.Next(); err != nil {
					return err
				}
			}
		}
	}
	return f.Leave()
}
