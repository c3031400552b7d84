package parquet

// Bounds of a block of deltas. Known writers make blocks of 128 numbers in four parts.
const (
	deltaBlockMax = 1 << 16
	deltaPartsMax = 512
)

// delta decodes numbers that are stored as differences.
//
// Source: Encodings.md, "Delta Encoding".
type delta struct {
	b       []byte // the bytes after the current part
	perPart int    // numbers in each part of a block
	parts   int    // parts of a block
	total   int    // numbers in all
	read    int    // numbers read so far
	value   int64  // the number that was read last; initially the first

	least  int64  // of the block
	widths []byte // bit widths of the remaining parts of the block
	inPart int    // numbers left in the part
	part   []byte // of the part
	bit    int    // in part
	width  int    // of the part
}

// newDelta returns the numbers in b. There must be at most countMax.
func newDelta(b []byte, countMax int) (*delta, error) {
	t := thrift{b: b} // Thrift encodes numbers in the same way
	var head [3]uint64
	for i := range head {
		var err error
		if head[i], err = t.uvarint(); err != nil {
			return nil, err
		}
	}
	block, parts, total := head[0], head[1], head[2]
	if block == 0 || block > deltaBlockMax || parts == 0 || parts > deltaPartsMax || block%parts != 0 ||
		block/parts%8 != 0 || total > uint64(countMax) {
		return nil, damaged("%d numbers in blocks of %d and parts of %d", total, block, parts)
	}
	first, err := t.integer()
	return &delta{b: b[t.at:], perPart: int(block / parts), parts: int(parts), total: int(total), value: first}, err
}

func (d *delta) next() (int64, error) {
	switch {
	case d.read == d.total:
		return 0, errShort
	case d.read == 0:
		d.read = 1
		return d.value, nil
	case d.inPart == 0:
		if err := d.nextPart(); err != nil {
			return 0, err
		}
	}
	difference := uint64(0)
	for i := 0; i < d.width; { // takes all bits in the same byte at once
		n := min(8-d.bit%8, d.width-i)
		difference |= uint64(d.part[d.bit/8]>>(d.bit%8)&(1<<n-1)) << i
		d.bit, i = d.bit+n, i+n
	}
	d.inPart--
	d.read++
	d.value += d.least + int64(difference) // may overflow, as in the writer
	return d.value, nil
}

// nextPart begins the next part of the block, or of the next block.
func (d *delta) nextPart() error {
	if len(d.widths) == 0 {
		t := thrift{b: d.b}
		var err error
		if d.least, err = t.integer(); err != nil {
			return err
		}
		if d.parts > len(d.b)-t.at {
			return errShort
		}
		d.widths, d.b = d.b[t.at:t.at+d.parts], d.b[t.at+d.parts:]
	}
	d.width = int(d.widths[0])
	d.widths = d.widths[1:]
	if d.width > 64 {
		return damaged("a number has %d bits", d.width)
	}
	bytes := d.perPart / 8 * d.width
	if bytes > len(d.b) {
		return errShort
	}
	d.part, d.b = d.b[:bytes], d.b[bytes:]
	d.bit, d.inPart = 0, d.perPart
	return nil
}

// remainder returns the bytes that follow the numbers.
func (d *delta) remainder(alive func() error) ([]byte, error) {
	all := *d
	for all.read < all.total {
		if all.read%(1<<20) == 0 {
			if err := alive(); err != nil {
				return nil, err
			}
		}
		if _, err := all.next(); err != nil {
			return nil, err
		}
	}
	return all.b, nil
}

// deltaDecoder decodes integers.
type deltaDecoder struct {
	*delta

	short bool // true for integers of 32 bits
}

func (d *deltaDecoder) next() (Value, error) {
	n, err := d.delta.next()
	if d.short {
		n = int64(int32(n))
	}
	return Value{Int: n}, err
}

// lengthsDecoder decodes values whose lengths precede all values.
type lengthsDecoder struct {
	lengths *delta
	values  []byte
}

func newLengths(b []byte, countMax int, alive func() error) (*lengthsDecoder, error) {
	lengths, err := newDelta(b, countMax)
	if err != nil {
		return nil, err
	}
	values, err := lengths.remainder(alive)
	return &lengthsDecoder{lengths, values}, err
}

func (d *lengthsDecoder) next() (Value, error) {
	n, err := d.lengths.next()
	if err == nil && (n < 0 || n > int64(len(d.values))) {
		err = damaged("a value has %d bytes", n)
	}
	if err != nil {
		return Value{}, err
	}
	value := d.values[:n:n]
	d.values = d.values[n:]
	return Value{Bytes: value}, nil
}

// prefixesDecoder decodes values that share a prefix with the previous value.
type prefixesDecoder struct {
	prefixes *delta
	suffixes *lengthsDecoder
	last     []byte
	node     *Node
}

func newPrefixes(b []byte, countMax int, n *Node, alive func() error) (*prefixesDecoder, error) {
	prefixes, err := newDelta(b, countMax)
	if err != nil {
		return nil, err
	}
	rest, err := prefixes.remainder(alive)
	if err != nil {
		return nil, err
	}
	suffixes, err := newLengths(rest, countMax, alive)
	return &prefixesDecoder{prefixes: prefixes, suffixes: suffixes, node: n}, err
}

// next keeps the common prefix of the last value and replaces the rest. A value is never longer
// than all suffixes together.
func (d *prefixesDecoder) next() (Value, error) {
	n, err := d.prefixes.next()
	if err == nil && (n < 0 || n > int64(len(d.last))) {
		err = damaged("a prefix has %d bytes", n)
	}
	if err != nil {
		return Value{}, err
	}
	suffix, err := d.suffixes.next()
	if err != nil {
		return Value{}, err
	}
	d.last = append(d.last[:n], suffix.Bytes...)
	if d.node.Type == FixedBytes && len(d.last) != d.node.Length {
		return Value{}, damaged("a value has %d bytes", len(d.last))
	}
	return Value{Bytes: d.last}, nil
}
