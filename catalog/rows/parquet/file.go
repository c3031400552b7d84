package parquet

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	// tailBytes is the length of the end of a file: the footer's size and the magic number.
	tailBytes = 8
	// guessBytes is how much of the end of a file is read first. Most footers fit into it.
	guessBytes = 64 << 10
)

// File is an open Parquet file. It must not be used concurrently.
type File struct {
	// Root is the root of the schema.
	Root *Node
	// Rows is the number of rows that the footer declares.
	Rows int64
	// HasIDs is true if any node has a field ID.
	HasIDs bool

	in      Input
	columns []*Node // all columns
	footer  []byte
	end     int64 // the offset where the row groups end
	groups  []int // the offset in the footer where each row group begins
	open    []*Column
	unzstd  *zstd.Decoder // nil until a page needs it
}

// Open reads the footer of a file. The caller must close the file.
func Open(in Input) (*File, error) {
	if in.Size < int64(len(magic)+tailBytes) {
		return nil, damaged("a file of %d bytes", in.Size)
	}
	guess := min(in.Size, guessBytes)
	tail, err := in.read(in.Size-guess, guess)
	if err != nil {
		return nil, err
	}
	last := tail[len(tail)-tailBytes:]
	switch string(last[4:]) {
	case magic:
	case magicEncrypted:
		return nil, unsupported("the file is encrypted")
	default:
		return nil, damaged("the file does not end as Parquet files do")
	}
	size := int64(binary.LittleEndian.Uint32(last))
	switch {
	case size > in.Size-int64(len(magic)+tailBytes):
		return nil, damaged("the footer has %d bytes, and the file %d", size, in.Size)
	case size > footerBytesMax:
		return nil, tooLarge("the footer has %d bytes, at most %d are read", size, footerBytesMax)
	case size+tailBytes > guess:
		front, err := in.read(in.Size-tailBytes-size, size+tailBytes-guess)
		if err != nil {
			return nil, err
		}
		tail = append(front, tail...)
	}
	end := len(tail) - tailBytes
	f := &File{in: in, end: in.Size - tailBytes - size, footer: tail[end-int(size) : end]}
	if err := f.readFooter(); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	return f, nil
}

// Close frees the memory of the columns.
func (f *File) Close() {
	for _, c := range f.open {
		c.drop()
	}
	if f.unzstd != nil {
		f.unzstd.Close()
	}
}

// read returns a part of the file.
func (in Input) read(offset, length int64) ([]byte, error) {
	parts, err := in.Read([]Range{{offset, length}})
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// readFooter reads the schema, and finds the row groups.
func (f *File) readFooter() error {
	t := &thrift{b: f.footer}
	var elements []element
	f.Rows = -1
	err := t.structure(0, func(id int, kind byte) (bool, error) {
		switch id {
		case 2:
			return true, t.structs(kind, func(_, size int) error {
				if size > elementsMax {
					return tooLarge("the schema has %d elements", size)
				}
				e, err := t.element()
				elements, f.HasIDs = append(elements, e), f.HasIDs || e.HasID
				return err
			})
		case 3:
			if kind != thriftLong {
				return false, nil
			}
			rows, err := t.integer()
			f.Rows = rows
			return true, err
		case 4:
			return true, t.structs(kind, func(_, size int) error {
				if size > groupsMax {
					return tooLarge("the file has %d row groups", size)
				}
				f.groups = append(f.groups, t.at)
				return t.skip(thriftStruct, 0)
			})
		case 8:
			return false, unsupported("the file is encrypted")
		}
		return false, nil
	})
	if err == nil && f.Rows < 0 {
		err = damaged("the number of rows is %d", f.Rows)
	}
	if err == nil {
		f.Root, f.columns, err = tree(elements)
	}
	return err
}

// Groups returns the number of row groups.
func (f *File) Groups() int { return len(f.groups) }

// Column returns the column at n. It can be read after the next call of Enter.
func (f *File) Column(n *Node) *Column {
	c := &Column{file: f, Node: n}
	f.open = append(f.open, c)
	return c
}

// chunk is a column in a row group.
type chunk struct {
	codec  int
	values int64
	Range
}

// Enter moves all columns to the beginning of a row group, and returns its number of rows. It
// returns ErrDamaged if a column was not read to the end of the previous group.
func (f *File) Enter(group int) (rows int64, err error) {
	if err := f.Leave(); err != nil {
		return 0, err
	}
	chunks := make(map[int]chunk, len(f.open))
	for _, c := range f.open {
		chunks[c.Node.leaf] = chunk{values: -1}
	}
	if rows, err = f.readGroup(f.groups[group], chunks); err != nil {
		return 0, fmt.Errorf("row group %d: %w", group, err)
	}
	first := make([]Range, len(f.open))
	for i, c := range f.open {
		c.chunk = chunks[c.Node.leaf]
		c.left = c.chunk.values
		first[i] = c.chunk.Range
		// If little would remain of the chunk, all of it is read.
		if first[i].Length > firstBytes+gapBytes {
			first[i].Length = firstBytes
		}
	}
	parts, err := f.gather(first)
	for i, part := range parts {
		f.open[i].window = window{file: f, rest: f.open[i].chunk.Range, bytes: part}
		f.open[i].window.rest.Offset += int64(len(part))
		f.open[i].window.rest.Length -= int64(len(part))
	}
	return rows, err
}

// Leave checks that all columns have been read to the end of their row group.
func (f *File) Leave() error {
	for _, c := range f.open {
		if c.left > 0 || c.inPage > 0 || c.peeked {
			return damaged("column %s has more rows than its row group", c.Node.Path())
		}
		c.drop()
	}
	return nil
}

// gather reads ranges. Ranges that are near each other are read together.
func (f *File) gather(ranges []Range) ([][]byte, error) {
	order := make([]int, len(ranges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compare(ranges[a].Offset, ranges[b].Offset) })
	var merged []Range
	at := make([]int, len(ranges)) // the index of the merged range that contains each range
	for _, i := range order {
		r := ranges[i]
		if last := len(merged) - 1; last >= 0 && r.Offset <= merged[last].Offset+merged[last].Length+gapBytes {
			merged[last].Length = max(merged[last].Length, r.Offset+r.Length-merged[last].Offset)
		} else {
			merged = append(merged, r)
		}
		at[i] = len(merged) - 1
	}
	if len(merged) == 0 {
		return nil, nil
	}
	read, err := f.in.Read(merged)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(ranges))
	for i, r := range ranges {
		start := r.Offset - merged[at[i]].Offset
		parts[i] = read[at[i]][start : start+r.Length : start+r.Length]
	}
	return parts, nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// readGroup reads the description of the row group at offset at of the footer. It sets the values
// in chunks, whose keys are the wanted columns.
func (f *File) readGroup(at int, chunks map[int]chunk) (rows int64, err error) {
	t := &thrift{b: f.footer, at: at}
	rows = -1
	err = t.structure(0, func(id int, kind byte) (bool, error) {
		switch {
		case id == 1:
			return true, t.structs(kind, func(i, size int) error {
				if size != len(f.columns) {
					return damaged("it has %d columns, and the schema %d", size, len(f.columns))
				}
				if _, wanted := chunks[i]; !wanted {
					return t.skip(thriftStruct, 0)
				}
				c, err := t.chunk(f.columns[i], f.end)
				chunks[i] = c
				if err != nil {
					return fmt.Errorf("column %s: %w", f.columns[i].Path(), err)
				}
				return nil
			})
		case id == 3 && kind == thriftLong:
			rows, err = t.integer()
			return true, err
		}
		return false, nil
	})
	for leaf, c := range chunks {
		if err == nil && c.values < 0 {
			err = damaged("column %s is missing", f.columns[leaf].Path())
		}
	}
	if err == nil && rows < 0 {
		err = damaged("it has %d rows", rows)
	}
	return rows, err
}

// chunk reads the description of a column chunk, which must end before end.
func (t *thrift) chunk(n *Node, end int64) (c chunk, err error) {
	c.values = -1
	kind, data, dictionary := -1, int64(0), int64(0)
	var path []string
	member := func(id int, wire byte) (bool, error) {
		into := map[int]*int64{5: &c.values, 7: &c.Length, 9: &data, 11: &dictionary}[id]
		switch {
		case id == 1 && wire == thriftInt:
			return t.into(&kind)
		case id == 3 && wire == thriftList:
			path, err = t.path()
			return true, err
		case id == 4 && wire == thriftInt:
			return t.into(&c.codec)
		case into != nil && wire == thriftLong:
			*into, err = t.integer()
			return true, err
		}
		return false, nil
	}
	err = t.structure(0, func(id int, wire byte) (bool, error) {
		switch {
		case id == 1 && wire == thriftBinary:
			return false, unsupported("the column is in another file")
		case id == 3 && wire == thriftStruct:
			return true, t.structure(1, member)
		case id == 8 || id == 9:
			return false, unsupported("the column is encrypted")
		}
		return false, nil
	})
	c.Offset = data
	if dictionary > 0 && dictionary < data {
		c.Offset = dictionary
	}
	switch {
	case err != nil:
		return c, err
	case kind != int(n.Type) || !slices.Equal(path, n.names()):
		return c, damaged("the chunk is of another column")
	case c.values < 0 || c.Length < 0 || c.Offset < int64(len(magic)) || c.Offset > end || c.Length > end-c.Offset:
		return c, damaged("it has %d values in %d bytes at %d, and the file ends at %d", c.values, c.Length,
			c.Offset, end)
	}
	return c, nil
}

// path reads a list of names.
func (t *thrift) path() (names []string, err error) {
	size, item, err := t.list()
	if err == nil && (item != thriftBinary && size > 0 || size > depthMax) {
		err = damaged("a path has %d names", size)
	}
	for i := 0; err == nil && i < size; i++ {
		var name []byte
		name, err = t.binary()
		names = append(names, string(name))
	}
	return names, err
}
