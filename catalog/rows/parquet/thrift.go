package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Types of the compact protocol of Thrift. The value of a boolean is part of its type, and takes no
// further bytes.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftShort  = 4
	thriftInt    = 5
	thriftLong   = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// errShort means that the bytes end too early. The file is damaged, unless more bytes can be read.
var errShort = fmt.Errorf("the bytes end too early: %w: %w", io.ErrUnexpectedEOF, ErrDamaged)

// thrift is a cursor over a structure in the compact protocol. It never allocates memory because of
// a declared size.
//
// Source: Thrift compact protocol.
type thrift struct {
	b  []byte
	at int
}

func (t *thrift) next() (byte, error) {
	if t.at >= len(t.b) {
		return 0, errShort
	}
	t.at++
	return t.b[t.at-1], nil
}

func (t *thrift) uvarint() (uint64, error) {
	n, size := binary.Uvarint(t.b[t.at:])
	switch {
	case size == 0:
		return 0, errShort
	case size < 0:
		return 0, damaged("a number has over 64 bits")
	}
	t.at += size
	return n, nil
}

// integer reads a number of 16, 32 or 64 bits.
func (t *thrift) integer() (int64, error) {
	n, err := t.uvarint()
	return int64(n>>1) ^ -int64(n&1), err
}

// count reads a number that must be at least 0 and fit into 32 bits.
func (t *thrift) count() (int, error) {
	n, err := t.integer()
	if err == nil && (n < 0 || n > 1<<31-1) {
		err = damaged("a size is %d", n)
	}
	return int(n), err
}

// binary reads bytes, which share memory with the input.
func (t *thrift) binary() ([]byte, error) {
	n, err := t.uvarint()
	if err != nil {
		return nil, err
	}
	if n > uint64(len(t.b)-t.at) {
		return nil, errShort
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at], nil
}

// list reads the head of a list. Each item takes at least one byte, so it refuses a size larger
// than the number of bytes left.
func (t *thrift) list() (size int, item byte, err error) {
	head, err := t.next()
	if err != nil {
		return 0, 0, err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = t.uvarint(); err != nil {
			return 0, 0, err
		}
	}
	if n > uint64(len(t.b)-t.at) {
		return 0, 0, errShort
	}
	return int(n), head & 15, nil
}

// structs calls read for each item of a list of structures. read must read the whole item.
func (t *thrift) structs(kind byte, read func(i, size int) error) error {
	if kind != thriftList {
		return damaged("a list has the type %d", kind)
	}
	size, item, err := t.list()
	if err == nil && size > 0 && item != thriftStruct {
		err = damaged("the items of a list have the type %d", item)
	}
	for i := 0; err == nil && i < size; i++ {
		err = read(i, size)
	}
	return err
}

// structure calls field for each field of a structure. field reads the value and returns true, or
// reads nothing and returns false.
func (t *thrift) structure(depth int, field func(id int, kind byte) (read bool, err error)) error {
	if depth > depthMax {
		return damaged("structures nest deeper than %d", depthMax)
	}
	id := 0
	for {
		head, err := t.next()
		if err != nil {
			return err
		}
		kind := head & 15
		if kind == thriftStop {
			return nil
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else {
			n, err := t.integer()
			if err != nil {
				return err
			}
			id = int(int16(n))
		}
		read, err := field(id, kind)
		if err == nil && !read {
			err = t.skip(kind, depth)
		}
		if err != nil {
			return err
		}
	}
}

// skip moves past a value.
func (t *thrift) skip(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse:
		return nil
	case thriftByte:
		return t.jump(1)
	case thriftShort, thriftInt, thriftLong:
		_, err := t.uvarint()
		return err
	case thriftDouble:
		return t.jump(8)
	case thriftUUID:
		return t.jump(16)
	case thriftBinary:
		_, err := t.binary()
		return err
	case thriftList, thriftSet:
		size, item, err := t.list()
		for ; err == nil && size > 0; size-- {
			err = t.skipItem(item, depth+1)
		}
		return err
	case thriftMap:
		return t.skipMap(depth + 1)
	case thriftStruct:
		return t.structure(depth+1, func(int, byte) (bool, error) { return false, nil })
	}
	return damaged("a field has the type %d", kind)
}

// skipItem moves past an item of a list or map. There, a boolean takes one byte.
func (t *thrift) skipItem(kind byte, depth int) error {
	switch {
	case kind == thriftTrue || kind == thriftFalse:
		return t.jump(1)
	case depth > depthMax:
		return damaged("structures nest deeper than %d", depthMax)
	}
	return t.skip(kind, depth)
}

func (t *thrift) skipMap(depth int) error {
	size, err := t.uvarint()
	if err != nil || size == 0 {
		return err
	}
	kinds, err := t.next()
	if err == nil && size > uint64(len(t.b)-t.at) {
		err = errShort
	}
	for ; err == nil && size > 0; size-- {
		if err = t.skipItem(kinds>>4, depth); err == nil {
			err = t.skipItem(kinds&15, depth)
		}
	}
	return err
}

func (t *thrift) jump(bytes int) error {
	if bytes > len(t.b)-t.at {
		return errShort
	}
	t.at += bytes
	return nil
}

// into reads a number into n.
func (t *thrift) into(n *int) (read bool, err error) {
	*n, err = t.count()
	return true, err
}
