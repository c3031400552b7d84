package parquet

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/bits"
)

// Kinds of pages, with the numbers of the format.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// Column reads the entries of one column, from the beginning of a row group to its end. An entry
// has a repetition level and a definition level. It also has a value if its definition level equals
// that of the node.
//
// Source: the Dremel encoding of Parquet.
type Column struct {
	Node *Node

	file   *File
	chunk  chunk
	left   int64 // entries in those pages of the chunk that have not been read yet
	window window

	inPage int // entries of the page that have not been read yet
	page   page
	dict   *dictionary
	held   int // bytes of memory held for page
	asked  int // entries since the last call of Alive

	peeked     bool
	repetition int
	definition int
}

// page is the current page of a column.
type page struct {
	repetitions, definitions *levels // nil if all are 0
	values                   decoder
}

// window is the part of a column chunk that has been read but not used yet.
type window struct {
	file  *File
	bytes []byte
	rest  Range // the part that has not been read yet
}

// more reads more of the chunk, until the window has at least atLeast bytes.
func (w *window) more(atLeast int) error {
	lacking := int64(atLeast - len(w.bytes))
	if lacking <= 0 {
		return nil
	}
	if lacking > w.rest.Length {
		return errShort
	}
	length := min(max(lacking, moreBytes), w.rest.Length)
	read, err := w.file.in.read(w.rest.Offset, length)
	if err != nil {
		return err
	}
	w.bytes = append(w.bytes[:len(w.bytes):len(w.bytes)], read...)
	w.rest.Offset, w.rest.Length = w.rest.Offset+length, w.rest.Length-length
	return nil
}

// take removes a number of bytes from the front, and returns them.
func (w *window) take(bytes int) ([]byte, error) {
	if err := w.more(bytes); err != nil {
		return nil, err
	}
	taken := w.bytes[:bytes:bytes]
	w.bytes = w.bytes[bytes:]
	return taken, nil
}

// drop frees the memory of the page and the dictionary.
func (c *Column) drop() {
	c.file.in.Memory.Give(c.held)
	if c.dict != nil {
		c.file.in.Memory.Give(c.dict.held)
	}
	c.held, c.dict, c.page, c.window = 0, nil, page{}, window{}
}

// Peek returns the levels of the next entry. At the end of the row group it returns io.EOF.
func (c *Column) Peek() (repetition, definition int, err error) {
	if c.peeked {
		return c.repetition, c.definition, nil
	}
	for c.inPage == 0 {
		if c.left == 0 {
			return 0, 0, io.EOF
		}
		if err := c.nextPage(); err != nil {
			return 0, 0, err
		}
	}
	if c.asked++; c.asked == aliveEvery {
		c.asked = 0
		if err := c.file.in.Alive(); err != nil {
			return 0, 0, err
		}
	}
	c.inPage--
	if c.repetition, err = c.page.repetitions.next(); err == nil {
		c.definition, err = c.page.definitions.next()
	}
	c.peeked = err == nil
	return c.repetition, c.definition, err
}

// Next moves past the next entry and returns its value. The value is valid if the definition level
// of the entry is the level of the node. Its bytes are valid until the next call.
func (c *Column) Next() (Value, error) {
	_, definition, err := c.Peek()
	if err != nil {
		return Value{}, err
	}
	c.peeked = false
	if definition < c.Node.Definition {
		return Value{}, nil
	}
	return c.page.values.next()
}

// header is the header of a page.
type header struct {
	kind             int
	unpacked, packed int
	sum              int64
	hasSum           bool
	// The fields of data pages, and of the dictionary.
	values, encoding, definitionEncoding, repetitionEncoding int
	// The fields of data pages of version 2.
	nulls, rows, definitionBytes, repetitionBytes int
	isPlain                                       bool // the values are not compressed
}

// readHeader reads the header of the next page.
func (c *Column) readHeader() (h header, err error) {
	for want := 128; ; want *= 2 {
		all := int64(len(c.window.bytes)) + c.window.rest.Length
		if err := c.window.more(int(min(int64(want), all))); err != nil {
			return h, err
		}
		t := &thrift{b: c.window.bytes}
		h, err = t.header()
		if err == nil {
			c.window.bytes = c.window.bytes[t.at:]
			return h, nil
		}
		switch {
		case !errors.Is(err, io.ErrUnexpectedEOF), int64(want) >= all:
			return h, err
		case want >= headerBytesMax:
			return h, tooLarge("the header of a page has over %d bytes", headerBytesMax)
		}
	}
}

// header reads the header of a page.
func (t *thrift) header() (h header, err error) {
	h.kind, h.values = -1, -1
	part := func(fields ...*int) error {
		return t.structure(1, func(id int, wire byte) (bool, error) {
			switch {
			case id == 7 && h.kind == pageDataV2 && (wire == thriftTrue || wire == thriftFalse):
				h.isPlain = wire == thriftFalse
			case id > 0 && id <= len(fields) && wire == thriftInt:
				return t.into(fields[id-1])
			}
			return false, nil
		})
	}
	err = t.structure(0, func(id int, wire byte) (bool, error) {
		switch {
		case id == 1 && wire == thriftInt:
			return t.into(&h.kind)
		case id == 2 && wire == thriftInt:
			return t.into(&h.unpacked)
		case id == 3 && wire == thriftInt:
			return t.into(&h.packed)
		case id == 4 && wire == thriftInt:
			h.sum, err = t.integer()
			h.hasSum = true
			return true, err
		case id == 5 && wire == thriftStruct && h.kind == pageData:
			return true, part(&h.values, &h.encoding, &h.definitionEncoding, &h.repetitionEncoding)
		case id == 7 && wire == thriftStruct && h.kind == pageDictionary:
			return true, part(&h.values, &h.encoding)
		case id == 8 && wire == thriftStruct && h.kind == pageDataV2:
			return true, part(&h.values, &h.nulls, &h.rows, &h.encoding, &h.definitionBytes, &h.repetitionBytes)
		}
		return false, nil
	})
	isKnown := h.kind == pageData || h.kind == pageDictionary || h.kind == pageDataV2
	switch {
	case err != nil:
		return h, err
	case isKnown && h.values < 0:
		return h, damaged("a page of the kind %d has no values", h.kind)
	case h.unpacked > pageBytesMax || h.values > pageValuesMax:
		return h, tooLarge("a page has %d bytes and %d values, at most %d and %d are read", h.unpacked, h.values,
			pageBytesMax, pageValuesMax)
	}
	return h, nil
}

// nextPage reads the next page, which may be the dictionary.
func (c *Column) nextPage() error {
	if err := c.file.in.Alive(); err != nil {
		return err
	}
	c.file.in.Memory.Give(c.held)
	c.held, c.page = 0, page{}
	h, err := c.readHeader()
	if err != nil {
		return err
	}
	packed, err := c.window.take(h.packed)
	if err != nil {
		return err
	}
	if h.hasSum && crc32.ChecksumIEEE(packed) != uint32(h.sum) {
		return damaged("the checksum of a page differs")
	}
	switch h.kind {
	case pageDictionary:
		return c.readDictionary(h, packed)
	case pageData:
		err = c.readPage(h, packed)
	case pageDataV2:
		err = c.readPageV2(h, packed)
	default:
		return nil // index pages have no values
	}
	if err == nil && int64(h.values) > c.left {
		err = damaged("the pages have more values than their column chunk")
	}
	if err != nil {
		return err
	}
	c.inPage, c.left = h.values, c.left-int64(h.values)
	return nil
}

// unpack decompresses a page into memory that c holds.
func (c *Column) unpack(packed []byte, size int) ([]byte, error) {
	if err := c.file.in.Memory.Take(size); err != nil {
		return nil, err
	}
	c.held = size
	return c.file.unpack(c.chunk.codec, packed, size)
}

func (c *Column) readDictionary(h header, packed []byte) error {
	if c.dict != nil {
		return damaged("the column chunk has two dictionaries")
	}
	if h.encoding != encodingPlain && h.encoding != encodingPlainDictionary {
		return unsupported("a dictionary has the encoding %d", h.encoding)
	}
	bytes, err := c.unpack(packed, h.unpacked)
	if err != nil {
		return err
	}
	// A dictionary of byte arrays has an index, with four bytes for each value.
	held := c.held
	if c.Node.Type == ByteArray {
		held += 4 * min(h.values, len(bytes)/4+1)
		if err := c.file.in.Memory.Take(held - c.held); err != nil {
			return err
		}
	}
	c.held = 0 // the dictionary holds it
	c.dict = &dictionary{held: held}
	return c.dict.read(c.Node, bytes, h.values)
}

// readPage reads a data page of version 1. The whole page is compressed, and each block of levels
// is preceded by its length.
func (c *Column) readPage(h header, packed []byte) error {
	rest, err := c.unpack(packed, h.unpacked)
	if err != nil {
		return err
	}
	part := func(encoding, levelMax int) (*levels, error) {
		switch {
		case levelMax == 0:
			return nil, nil
		case encoding != encodingRLE:
			return nil, unsupported("levels have the encoding %d", encoding)
		case len(rest) < 4:
			return nil, errShort
		}
		size := binary.LittleEndian.Uint32(rest)
		if int64(size) > int64(len(rest)-4) {
			return nil, errShort
		}
		l := newLevels(rest[4:4+size], levelMax)
		rest = rest[4+size:]
		return l, nil
	}
	if c.page.repetitions, err = part(h.repetitionEncoding, c.Node.Repeat); err != nil {
		return err
	}
	if c.page.definitions, err = part(h.definitionEncoding, c.Node.Definition); err != nil {
		return err
	}
	c.page.values, err = c.decoder(h, rest)
	return err
}

// readPageV2 reads a data page of version 2: the levels are not compressed.
func (c *Column) readPageV2(h header, packed []byte) error {
	levelBytes := h.repetitionBytes + h.definitionBytes
	if levelBytes > len(packed) || levelBytes > h.unpacked {
		return errShort
	}
	if c.Node.Repeat > 0 {
		c.page.repetitions = newLevels(packed[:h.repetitionBytes], c.Node.Repeat)
	}
	if c.Node.Definition > 0 {
		c.page.definitions = newLevels(packed[h.repetitionBytes:levelBytes], c.Node.Definition)
	}
	rest, size := packed[levelBytes:], h.unpacked-levelBytes
	var err error
	switch {
	case !h.isPlain && (size > 0 || len(rest) > 0):
		rest, err = c.unpack(rest, size)
	case len(rest) != size:
		err = damaged("a page has %d bytes, and %d in its header", len(rest), size)
	}
	if err != nil {
		return err
	}
	c.page.values, err = c.decoder(h, rest)
	return err
}

// levels decodes repetition or definition levels. A nil *levels has only zeros.
type levels struct {
	hybrid

	max int
}

func newLevels(b []byte, levelMax int) *levels {
	return &levels{hybrid{b: b, width: bits.Len(uint(levelMax))}, levelMax}
}

func (l *levels) next() (int, error) {
	if l == nil {
		return 0, nil
	}
	level, err := l.hybrid.next()
	if err == nil && int(level) > l.max {
		err = damaged("a level is %d, and at most %d in the schema", level, l.max)
	}
	return int(level), err
}
