package rows

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"moorage/catalog/rows/parquet"
)

// bitmap is a set of 64-bit numbers. It keeps the numbers in their stored form, because a file of a
// few bytes can contain billions of them.
//
// Source: RoaringFormatSpec, "Extension for 64-bit Implementations".
type bitmap struct {
	containers []container // by key
	count      uint64
	held       int // bytes of memory taken for the containers
}

// container holds the numbers with the same first 48 bits.
type container struct {
	key  uint64 // the 48 bits
	kind containerKind
	data []byte // little endian
}

type containerKind uint8

const (
	arrayContainer containerKind = iota // sorted numbers of 16 bits
	bitsContainer                       // 65,536 bits
	runContainer                        // sorted pairs of a first number and the count of those after it
)

const (
	cookieRuns    = 12347
	cookieNoRuns  = 12346
	arrayMax      = 4096
	bitsBytes     = 8192
	noOffsetsMax  = 4 // with runs, a bitmap of fewer containers has no offsets
	containersMax = 1 << 16
	// containerBytes is the memory of one container. In a file, a container can be as small as 10
	// bytes.
	containerBytes = 40
)

var errBitmap = errors.New("the bitmap is damaged")

// readBitmap reads a bitmap, which must end where raw ends. The result shares memory with raw. Its
// containers are taken from memory, and the caller must give back the bytes in held.
func readBitmap(raw []byte, memory *parquet.Memory) (*bitmap, error) {
	b := &bitmap{}
	if err := b.read(raw, memory); err != nil {
		memory.Give(b.held)
		return nil, err
	}
	return b, nil
}

// read reads all parts of a bitmap.
func (b *bitmap) read(raw []byte, memory *parquet.Memory) error {
	if len(raw) < 8 {
		return errBitmap
	}
	parts := binary.LittleEndian.Uint64(raw)
	raw = raw[8:]
	for last := int64(-1); parts > 0; parts-- {
		if len(raw) < 4 {
			return errBitmap
		}
		high := binary.LittleEndian.Uint32(raw)
		if int64(high) <= last {
			return fmt.Errorf("%w: its parts are not sorted", errBitmap)
		}
		last = int64(high)
		var err error
		if raw, err = b.readPart(uint64(high)<<16, raw[4:], memory); err != nil {
			return err
		}
	}
	if len(raw) > 0 {
		return fmt.Errorf("%w: %d bytes follow it", errBitmap, len(raw))
	}
	return nil
}

// readPart reads a bitmap of 32-bit numbers. high is the upper part of the keys of the bitmap's
// containers. It returns the bytes after the bitmap.
func (b *bitmap) readPart(high uint64, raw []byte, memory *parquet.Memory) ([]byte, error) {
	at := 0
	take := func(n int) []byte {
		if n > len(raw)-at {
			return nil
		}
		at += n
		return raw[at-n : at : at]
	}
	head := take(4)
	if head == nil {
		return nil, errBitmap
	}
	cookie, size, hasOffsets := binary.LittleEndian.Uint32(head), 0, true
	var runs []byte
	switch {
	case cookie&0xffff == cookieRuns:
		size = int(cookie>>16) + 1
		if runs = take((size + 7) / 8); runs == nil {
			return nil, errBitmap
		}
		hasOffsets = size >= noOffsetsMax
	case cookie == cookieNoRuns:
		count := take(4)
		if count == nil || binary.LittleEndian.Uint32(count) > containersMax {
			return nil, errBitmap
		}
		size = int(binary.LittleEndian.Uint32(count))
	default:
		return nil, fmt.Errorf("%w: it begins with %d", errBitmap, cookie)
	}
	keys := take(4 * size)
	if keys == nil && size > 0 || hasOffsets && take(4*size) == nil && size > 0 {
		return nil, errBitmap
	}
	if err := memory.Take(size * containerBytes); err != nil {
		return nil, err
	}
	b.held += size * containerBytes
	b.containers = slices.Grow(b.containers, size)
	for i, last := 0, -1; i < size; i++ {
		key, count := int(binary.LittleEndian.Uint16(keys[4*i:])), int(binary.LittleEndian.Uint16(keys[4*i+2:]))+1
		if key <= last {
			return nil, fmt.Errorf("%w: its keys are not sorted", errBitmap)
		}
		last = key
		c := container{key: high | uint64(key)}
		switch {
		case runs != nil && runs[i/8]>>(i%8)&1 == 1:
			length := take(2)
			if length == nil {
				return nil, errBitmap
			}
			c.kind, c.data = runContainer, take(4*int(binary.LittleEndian.Uint16(length)))
		case count <= arrayMax:
			c.data = take(2 * count)
		default:
			c.kind, c.data = bitsContainer, take(bitsBytes)
		}
		if c.data == nil || !c.isSorted() || c.size() != count {
			return nil, errBitmap
		}
		b.containers = append(b.containers, c)
		b.count += uint64(count)
	}
	return raw[at:], nil
}

// number returns the 16-bit number at index i.
func (c container) number(i int) int { return int(binary.LittleEndian.Uint16(c.data[2*i:])) }

// isSorted reports whether the numbers or runs of c are in ascending order, as binary search
// requires.
func (c container) isSorted() bool {
	last := -1
	switch c.kind {
	case arrayContainer:
		for i := range len(c.data) / 2 {
			if c.number(i) <= last {
				return false
			}
			last = c.number(i)
		}
	case runContainer:
		for i := range len(c.data) / 4 {
			if c.number(2*i) <= last || c.number(2*i)+c.number(2*i+1) > 0xffff {
				return false
			}
			last = c.number(2*i) + c.number(2*i+1)
		}
	}
	return true
}

// size returns the number of elements of c.
func (c container) size() (count int) {
	switch c.kind {
	case arrayContainer:
		return len(c.data) / 2
	case bitsContainer:
		for i := 0; i < bitsBytes; i += 8 {
			count += bits.OnesCount64(binary.LittleEndian.Uint64(c.data[i:]))
		}
	case runContainer:
		for i := range len(c.data) / 4 {
			count += c.number(2*i+1) + 1
		}
	}
	return count
}

// has reports whether n is in the set.
func (b *bitmap) has(n uint64) bool {
	at, found := slices.BinarySearchFunc(b.containers, n>>16, func(c container, key uint64) int {
		return cmp.Compare(c.key, key)
	})
	if !found {
		return false
	}
	c, low := b.containers[at], int(n&0xffff)
	switch c.kind {
	case bitsContainer:
		return c.data[low/8]>>(low%8)&1 == 1
	case runContainer:
		i := searchLast(len(c.data)/4, func(i int) bool { return c.number(2*i) <= low })
		return i >= 0 && low <= c.number(2*i)+c.number(2*i+1)
	}
	i := searchLast(len(c.data)/2, func(i int) bool { return c.number(i) <= low })
	return i >= 0 && c.number(i) == low
}

// searchLast returns the last index below n for which holds returns true, or -1. holds must be true
// for all smaller indexes.
func searchLast(n int, holds func(i int) bool) int {
	low, high := -1, n
	for low+1 < high {
		if middle := int(uint(low+high) / 2); holds(middle) { // low+high is at least 0
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
