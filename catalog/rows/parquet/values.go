package parquet

import (
	"encoding/binary"
	"math"
)

// Encodings, with the numbers of the format.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDelta           = 5
	encodingDeltaLengths    = 6
	encodingDeltaBytes      = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// Value is a value of a column.
type Value struct {
	// Int is the value of a Boolean (0 or 1), an Int32 or an Int64.
	Int int64
	// Float is the value of a Float or a Double.
	Float float64
	// Bytes is the value of an Int96, a ByteArray or FixedBytes. It shares memory with a page.
	Bytes []byte
}

// decoder decodes the values of a page, one by one.
type decoder interface{ next() (Value, error) }

// decoder returns the decoder of a data page. b holds the bytes after the levels.
func (c *Column) decoder(h header, b []byte) (decoder, error) {
	kind := c.Node.Type
	isInt, isBytes := kind == Int32 || kind == Int64, kind == ByteArray || kind == FixedBytes
	if len(b) == 0 {
		return emptyDecoder{}, nil // all values are null
	}
	switch h.encoding {
	case encodingPlain:
		if kind == Boolean {
			return &bitDecoder{b: b}, nil
		}
		return &plainDecoder{b: b, node: c.Node}, nil
	case encodingPlainDictionary, encodingDictionary:
		if c.dict == nil {
			return nil, damaged("the column chunk has no dictionary")
		}
		if b[0] > 32 {
			return nil, damaged("an index has %d bits", b[0])
		}
		return &dictionaryDecoder{hybrid{b: b[1:], width: int(b[0])}, c.dict}, nil
	case encodingRLE:
		if kind == Boolean {
			if len(b) < 4 {
				return emptyDecoder{}, nil
			}
			size := binary.LittleEndian.Uint32(b)
			if int64(size) > int64(len(b)-4) {
				return nil, errShort
			}
			return &flagDecoder{hybrid{b: b[4 : 4+size], width: 1}}, nil
		}
	case encodingDelta:
		if isInt {
			d, err := newDelta(b, h.values)
			return &deltaDecoder{d, kind == Int32}, err
		}
	case encodingDeltaLengths:
		if kind == ByteArray {
			return newLengths(b, h.values, c.file.in.Alive)
		}
	case encodingDeltaBytes:
		if isBytes {
			return newPrefixes(b, h.values, c.Node, c.file.in.Alive)
		}
	case encodingSplit:
		if size := sizeOf(c.Node); size > 0 && (isInt || kind == Float || kind == Double || kind == FixedBytes) {
			return c.newSplit(b, size)
		}
	}
	return nil, unsupported("a page of type %s has the encoding %d", kind, h.encoding)
}

// sizeOf returns the size in bytes of each value in the plain encoding. It is 0 if sizes vary.
func sizeOf(n *Node) int {
	switch n.Type {
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedBytes:
		return n.Length
	}
	return 0
}

// valueOf decodes b, a value in the plain encoding. b must have the size of the type.
func valueOf(n *Node, b []byte) Value {
	switch n.Type {
	case Int32:
		return Value{Int: int64(int32(binary.LittleEndian.Uint32(b)))}
	case Int64:
		return Value{Int: int64(binary.LittleEndian.Uint64(b))}
	case Float:
		return Value{Float: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}
	case Double:
		return Value{Float: math.Float64frombits(binary.LittleEndian.Uint64(b))}
	}
	return Value{Bytes: b}
}

// emptyDecoder decodes a page without values.
type emptyDecoder struct{}

func (emptyDecoder) next() (Value, error) { return Value{}, errShort }

// bitDecoder decodes booleans with one bit each.
type bitDecoder struct {
	b  []byte
	at int
}

func (d *bitDecoder) next() (Value, error) {
	if d.at/8 >= len(d.b) {
		return Value{}, errShort
	}
	bit := d.b[d.at/8] >> (d.at % 8) & 1
	d.at++
	return Value{Int: int64(bit)}, nil
}

// plainDecoder decodes values that are stored one after another.
type plainDecoder struct {
	b    []byte
	node *Node
}

func (d *plainDecoder) next() (Value, error) {
	size := sizeOf(d.node)
	if d.node.Type == ByteArray {
		if len(d.b) < 4 {
			return Value{}, errShort
		}
		n := binary.LittleEndian.Uint32(d.b)
		if d.b = d.b[4:]; int64(n) > int64(len(d.b)) {
			return Value{}, errShort
		}
		size = int(n)
	}
	if size > len(d.b) {
		return Value{}, errShort
	}
	value := valueOf(d.node, d.b[:size:size])
	d.b = d.b[size:]
	return value, nil
}

// dictionary holds the values of a dictionary page.
type dictionary struct {
	node   *Node
	bytes  []byte
	starts []uint32 // where each value of a ByteArray begins; nil for other types
	count  int
	held   int // bytes of memory taken
}

// read reads count values.
func (d *dictionary) read(n *Node, b []byte, count int) error {
	d.node, d.bytes, d.count = n, b, count
	switch {
	case n.Type == Boolean:
		return unsupported("a column of booleans has a dictionary")
	case n.Type != ByteArray && int64(count)*int64(sizeOf(n)) > int64(len(b)),
		n.Type == ByteArray && int64(count)*4 > int64(len(b)):
		return damaged("a dictionary of %d values has %d bytes", count, len(b))
	case n.Type == ByteArray:
		d.starts = make([]uint32, count)
		plain := plainDecoder{b: b, node: n}
		for i := range d.starts {
			d.starts[i] = uint32(len(b) - len(plain.b))
			if _, err := plain.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// dictionaryDecoder decodes indexes into a dictionary.
type dictionaryDecoder struct {
	hybrid

	dict *dictionary
}

func (d *dictionaryDecoder) next() (Value, error) {
	index, err := d.hybrid.next()
	if err != nil {
		return Value{}, err
	}
	if int64(index) >= int64(d.dict.count) {
		return Value{}, damaged("a dictionary of %d values has no value %d", d.dict.count, index)
	}
	b := d.dict.bytes
	if d.dict.starts != nil {
		b = b[d.dict.starts[index]:]
		size := binary.LittleEndian.Uint32(b)
		return Value{Bytes: b[4 : 4+size : 4+size]}, nil
	}
	size := sizeOf(d.dict.node)
	return valueOf(d.dict.node, b[int(index)*size:][:size:size]), nil
}

// flagDecoder decodes booleans in runs.
type flagDecoder struct{ hybrid }

func (d *flagDecoder) next() (Value, error) {
	flag, err := d.hybrid.next()
	return Value{Int: int64(flag)}, err
}

// splitDecoder decodes values that are split into streams of bytes: the first bytes of all values,
// then the second bytes, and so on.
type splitDecoder struct {
	b     []byte
	node  *Node
	count int
	at    int
	one   []byte
}

// newSplit returns the decoder of values of size bytes. The size comes from the footer, so it can
// be far larger than the page.
func (c *Column) newSplit(b []byte, size int) (*splitDecoder, error) {
	if len(b)%size != 0 {
		return nil, damaged("the values of a page have %d bytes, and each one %d", len(b), size)
	}
	if err := c.file.in.Memory.Take(size); err != nil {
		return nil, err
	}
	c.held += size
	return &splitDecoder{b: b, node: c.Node, count: len(b) / size, one: make([]byte, size)}, nil
}

func (d *splitDecoder) next() (Value, error) {
	if d.at >= d.count {
		return Value{}, errShort
	}
	for i := range d.one {
		d.one[i] = d.b[i*d.count+d.at]
	}
	d.at++
	return valueOf(d.node, d.one), nil
}

// hybrid decodes numbers of up to 32 bits in runs of equal numbers and runs of packed numbers.
//
// Source: Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
type hybrid struct {
	b     []byte
	width int // bits

	equal  uint64 // numbers left in the run of equal numbers
	number uint32 // the number repeated in that run
	packed uint64 // numbers left in the run of packed numbers
	buffer uint64 // bits already taken from the run's bytes
	filled int    // number of bits in buffer
	rest   []byte // bytes of the run of packed numbers
}

func (h *hybrid) next() (uint32, error) {
	for h.equal == 0 && h.packed == 0 {
		if err := h.run(); err != nil {
			return 0, err
		}
	}
	if h.equal > 0 {
		h.equal--
		return h.number, nil
	}
	for h.filled < h.width {
		if len(h.rest) == 0 {
			return 0, errShort
		}
		h.buffer |= uint64(h.rest[0]) << h.filled
		h.rest, h.filled = h.rest[1:], h.filled+8
	}
	number := uint32(h.buffer & (1<<h.width - 1))
	h.buffer >>= h.width
	h.filled -= h.width
	h.packed--
	return number, nil
}

// run begins the next run.
func (h *hybrid) run() error {
	head, size := binary.Uvarint(h.b)
	if size <= 0 {
		return errShort
	}
	h.b = h.b[size:]
	if head>>1 > pageValuesMax {
		return damaged("a run has %d values", head>>1)
	}
	if head&1 == 1 {
		// A run is padded to a multiple of eight numbers. The last run may lack the bytes of that
		// padding.
		bytes := min(int(head>>1)*h.width, len(h.b))
		h.packed, h.rest, h.b = head>>1*8, h.b[:bytes], h.b[bytes:]
		h.buffer, h.filled = 0, 0
		return nil
	}
	bytes := (h.width + 7) / 8
	if bytes > len(h.b) {
		return errShort
	}
	h.equal, h.number = head>>1, 0
	for i := range bytes {
		h.number |= uint32(h.b[i]) << (8 * i)
	}
	if h.width < 32 && h.number>>h.width != 0 {
		return damaged("a number of %d bits is %d", h.width, h.number)
	}
	h.b = h.b[bytes:]
	return nil
}
