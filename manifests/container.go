package manifests

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// FileBytesMax is the maximum unpacked size of one file. Engines begin a new manifest at 8 MiB. A
// list that unpacks to FileBytesMax has about 500,000 manifests.
const FileBytesMax = 64 << 20

var (
	// ErrDamaged means that the bytes are not a file of the expected kind.
	ErrDamaged = errors.New("damaged")
	// ErrTooLarge means that a file would take more memory than the caller or FileBytesMax allows.
	ErrTooLarge = errors.New("too large")
	// ErrForeign means that a file is valid but unusable for this package: it has an unknown codec,
	// or a value for which the schema of the new list has no field.
	ErrForeign = errors.New("cannot be carried over")
)

const (
	magic       = "Obj\x01"
	markerBytes = 16
	// pairsMax is the maximum number of pairs in the header. Known writers write up to ten.
	pairsMax = 64
	// blockBytes is the size, before compression, at which this package ends a block. It is the
	// default of Java's writer.
	blockBytes = 64000

	schemaKey = "avro.schema"
	codecKey  = "avro.codec"
)

func damaged(format string, arguments ...any) error {
	return fmt.Errorf(format+": %w", append(arguments, ErrDamaged)...)
}

// pair is an item of the header.
type pair struct{ key, value string }

// container is an Avro file whose blocks are not unpacked yet.
type container struct {
	header []pair // in the order of the file
	marker string
	codec  codec
	schema *schema
	blocks string // the bytes after the header
}

// open reads the header of a file. Only the field blocks of the result shares memory with text.
func (r *Reader) open(text string) (*container, error) {
	c := cursor{text: text}
	if start, err := c.take(int64(len(magic))); err != nil || start != magic {
		return nil, damaged("file does not begin as Avro files do")
	}
	file := &container{}
	for count, err := range c.runs() {
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		if count > int64(pairsMax-len(file.header)) {
			return nil, damaged("header has over %d items", pairsMax)
		}
		for range count {
			key, err := c.sized()
			if err != nil {
				return nil, fmt.Errorf("header: %w", err)
			}
			value, err := c.sized()
			if err != nil {
				return nil, fmt.Errorf("header: %w", err)
			}
			if slices.ContainsFunc(file.header, func(p pair) bool { return p.key == key }) {
				return nil, damaged("header has %.20q twice", key)
			}
			if key == schemaKey {
				if value, file.schema, err = r.schema(value); err != nil {
					return nil, err
				}
			} else {
				value = strings.Clone(value)
			}
			file.header = append(file.header, pair{strings.Clone(key), value})
		}
	}
	marker, err := c.take(markerBytes)
	if err != nil {
		return nil, fmt.Errorf("marker: %w", err)
	}
	file.marker, file.blocks = strings.Clone(marker), c.text[c.at:]
	if file.schema == nil {
		return nil, damaged("schema is missing")
	}
	file.codec, err = codecNamed(file.value(codecKey))
	return file, err
}

// value returns the header's value for key, or "" if the header has no such key.
func (f *container) value(key string) string {
	for _, p := range f.header {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

// block is a block after unpacking.
type block struct {
	records int64 // number of records, from the block's head; at least 0
	text    string
}

// unpacked yields the blocks in order. If it yields an error, it ends. It yields at most *left
// bytes, and no more than FileBytesMax. It subtracts the yielded bytes from *left. If scratch is
// not nil, all blocks use its memory, so a block is valid only until the next block.
func (f *container) unpacked(left *int, scratch *[]byte) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		c := cursor{text: f.blocks}
		ofFile := FileBytesMax
		for i := 0; c.at < len(c.text); i++ {
			b, err := f.next(&c, min(*left, ofFile), scratch)
			if err != nil {
				yield(block{}, fmt.Errorf("block %d: %w", i, err))
				return
			}
			*left, ofFile = *left-len(b.text), ofFile-len(b.text)
			if !yield(b, nil) {
				return
			}
		}
	}
}

func (f *container) next(c *cursor, left int, scratch *[]byte) (block, error) {
	records, err := c.long()
	if err != nil {
		return block{}, err
	}
	if records < 0 {
		return block{}, damaged("%d records", records)
	}
	payload, err := c.sized()
	if err != nil {
		return block{}, err
	}
	if marker, err := c.take(markerBytes); err != nil || marker != f.marker {
		return block{}, damaged("marker is missing")
	}
	if scratch == nil {
		scratch = new([]byte)
	}
	*scratch, err = f.codec.unpack((*scratch)[:0], payload, left)
	return block{records, textOf(*scratch)}, err
}

// records yields a cursor for each record of the file, in order. The loop must read the whole
// record with the cursor. If records yields an error, it ends. For left and scratch, see unpacked.
func (f *container) records(left *int, scratch *[]byte) iter.Seq2[*cursor, error] {
	return func(yield func(*cursor, error) bool) {
		for b, err := range f.unpacked(left, scratch) {
			if err != nil {
				yield(nil, err)
				return
			}
			c := &cursor{text: b.text}
			more := b.records
			for ; more > 0 && c.at < len(c.text); more-- { // each record has fields, so it takes a byte
				if !yield(c, nil) {
					return
				}
			}
			if more > 0 || c.at < len(c.text) {
				yield(nil, damaged("block has other records than it says"))
				return
			}
		}
	}
}

// encode returns the file with the given records.
func (f *container) encode(records iter.Seq[string]) ([]byte, error) {
	out := append([]byte(nil), magic...)
	out = appendLong(out, int64(len(f.header)))
	for _, p := range f.header {
		out = appendSized(appendSized(out, p.key), p.value)
	}
	out = append(appendLong(out, 0), f.marker...)
	pending, packed := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer giveBack(pending)
	defer giveBack(packed)
	*pending = (*pending)[:0]
	count := int64(0)
	flush := func() (err error) {
		if count == 0 {
			return nil
		}
		if *packed, err = f.codec.pack((*packed)[:0], *pending); err != nil {
			return err
		}
		out = append(appendSized(appendLong(out, count), textOf(*packed)), f.marker...)
		*pending, count = (*pending)[:0], 0
		return nil
	}
	for record := range records {
		*pending = append(*pending, record...)
		count++
		if len(*pending) >= blockBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	err := flush()
	return out, err
}

// setPair returns the header with value under key. The value replaces an old value in its place;
// otherwise the pair comes last.
func setPair(header []pair, key, value string) []pair {
	if at := slices.IndexFunc(header, func(p pair) bool { return p.key == key }); at >= 0 {
		header[at].value = value
		return header
	}
	return append(header, pair{key, value})
}

// deletePair returns the header without key.
func deletePair(header []pair, key string) []pair {
	return slices.DeleteFunc(header, func(p pair) bool { return p.key == key })
}

func appendLong(out []byte, n int64) []byte {
	z := uint64(n)<<1 ^ uint64(n>>63)
	for ; z >= 0x80; z >>= 7 {
		out = append(out, byte(z)|0x80)
	}
	return append(out, byte(z))
}

func appendSized(out []byte, text string) []byte {
	return append(appendLong(out, int64(len(text))), text...)
}
