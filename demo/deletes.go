package demo

import (
	"bytes"
	"encoding/binary"
)

// Codes of the Parquet format. Source: parquet.thrift.
const (
	parquetInt64, parquetByteArray = 2, 6
	parquetRequired                = 0
	parquetUTF8                    = 0 // converted type
	parquetPlain, parquetRLE       = 0, 3
	parquetUncompressed            = 0
	parquetDataPage                = 0
)

// The reserved columns of position delete files. Source: Iceberg table specification.
const (
	deleteFilePathID = 2147483546
	deletePosID      = 2147483545
)

// positionDeletes returns a Parquet file that deletes rows of one data file, by their positions.
// The demo cannot embed this file, because it contains the location of the data file. It is the
// only Parquet file that the server writes, so the server uses no library for it.
func positionDeletes(dataFile string, positions []int64) []byte {
	var paths, numbers []byte
	for _, position := range positions {
		paths = binary.LittleEndian.AppendUint32(paths, uint32(len(dataFile)))
		paths = append(paths, dataFile...)
		numbers = binary.LittleEndian.AppendUint64(numbers, uint64(position))
	}
	columns := []deleteColumn{
		{"file_path", parquetByteArray, deleteFilePathID, paths},
		{"pos", parquetInt64, deletePosID, numbers},
	}
	file := []byte("PAR1")
	rows := int64(len(positions))
	var chunks []func(*thrift)
	var total int64
	for _, c := range columns {
		offset := int64(len(file))
		file = append(file, c.pageHeader(rows)...)
		file = append(file, c.values...)
		size := int64(len(file)) - offset
		total += size
		chunks = append(chunks, c.chunk(offset, size, rows))
	}
	var footer thrift
	footer.i32(1, 1) // version
	footer.list(2, []func(*thrift){
		func(t *thrift) { t.text(4, "table").i32(5, int32(len(columns))) },
		columns[0].element, columns[1].element,
	})
	footer.i64(3, rows)
	footer.list(4, []func(*thrift){func(t *thrift) { t.list(1, chunks).i64(2, total).i64(3, rows) }})
	footer.text(6, "moorage demo")
	footer.end()
	file = append(file, footer.Bytes()...)
	file = binary.LittleEndian.AppendUint32(file, uint32(footer.Len()))
	return append(file, "PAR1"...)
}

// deleteColumn is a column of a position delete file. All its values are in one page.
type deleteColumn struct {
	name    string
	kind    int32
	fieldID int32
	values  []byte // PLAIN
}

// element writes the column as a SchemaElement.
func (c deleteColumn) element(t *thrift) {
	t.i32(1, c.kind).i32(3, parquetRequired).text(4, c.name)
	if c.kind == parquetByteArray {
		t.i32(6, parquetUTF8)
	}
	t.i32(9, c.fieldID)
}

func (c deleteColumn) pageHeader(rows int64) []byte {
	var t thrift
	t.i32(1, parquetDataPage).i32(2, int32(len(c.values))).i32(3, int32(len(c.values)))
	t.record(5, func(t *thrift) {
		t.i32(1, int32(rows)).i32(2, parquetPlain).i32(3, parquetRLE).i32(4, parquetRLE)
	})
	t.end()
	return t.Bytes()
}

// chunk returns a function that writes the column as a ColumnChunk.
func (c deleteColumn) chunk(offset, size, rows int64) func(*thrift) {
	return func(t *thrift) {
		t.i64(2, offset).record(3, func(t *thrift) {
			t.i32(1, c.kind).i32s(2, parquetPlain, parquetRLE).texts(3, c.name).i32(4, parquetUncompressed)
			t.i64(5, rows).i64(6, size).i64(7, size).i64(9, offset)
		})
	}
}

// thrift writes structs in the compact protocol of Apache Thrift, with their fields in order.
type thrift struct {
	bytes.Buffer
	last int16 // number of the previous field
}

// Types of the compact protocol.
const (
	thriftI32, thriftI64, thriftBinary, thriftList, thriftStruct = 5, 6, 8, 9, 12
)

func (t *thrift) field(number int16, kind byte) {
	t.WriteByte(byte(number-t.last)<<4 | kind) // the numbers of adjacent fields differ by at most 15
	t.last = number
}

func (t *thrift) zigzag(value int64) { t.Write(binary.AppendVarint(nil, value)) }
func (t *thrift) length(n int)       { t.Write(binary.AppendUvarint(nil, uint64(n))) }
func (t *thrift) string(text string) { t.length(len(text)); t.WriteString(text) }
func (t *thrift) end()               { t.WriteByte(0) }
func (t *thrift) head(n int, kind byte) { // for a list with fewer than 15 elements
	t.WriteByte(byte(n)<<4 | kind)
}

func (t *thrift) i32(number int16, value int32) *thrift {
	t.field(number, thriftI32)
	t.zigzag(int64(value))
	return t
}

func (t *thrift) i64(number int16, value int64) *thrift {
	t.field(number, thriftI64)
	t.zigzag(value)
	return t
}

func (t *thrift) text(number int16, value string) *thrift {
	t.field(number, thriftBinary)
	t.string(value)
	return t
}

func (t *thrift) i32s(number int16, values ...int64) *thrift {
	t.field(number, thriftList)
	t.head(len(values), thriftI32)
	for _, value := range values {
		t.zigzag(value)
	}
	return t
}

func (t *thrift) texts(number int16, values ...string) *thrift {
	t.field(number, thriftList)
	t.head(len(values), thriftBinary)
	for _, value := range values {
		t.string(value)
	}
	return t
}

func (t *thrift) record(number int16, write func(*thrift)) *thrift {
	t.field(number, thriftStruct)
	t.nested(write)
	return t
}

func (t *thrift) list(number int16, records []func(*thrift)) *thrift {
	t.field(number, thriftList)
	t.head(len(records), thriftStruct)
	for _, write := range records {
		t.nested(write)
	}
	return t
}

// nested writes a struct, whose fields have their own numbers.
func (t *thrift) nested(write func(*thrift)) {
	outer := t.last
	t.last = 0
	write(t)
	t.end()
	t.last = outer
}
