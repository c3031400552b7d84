package rest

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"weak"

	"github.com/klauspost/compress/flate"
	"github.com/maypok86/otter/v2"

	"moorage/catalog"
	"moorage/metadata"
)

// deflated is a text as DEFLATE blocks. They end at a byte boundary and refer only to data within
// the text, so they can be part of any gzip member. All callers get the same document, each between
// a different head and tail. So the server compresses a document only once, which makes compressed
// loads cheap.
//
// A deflated is immutable.
type deflated struct {
	blocks []byte
	size   int    // of the text
	crc    uint32 // of the text
	shift  uint32 // x^(8·size) modulo the CRC's polynomial: the effect of size further bytes on a CRC
}

// deflate compresses text at the fastest level, because documents are large and repetitive, and
// change with each commit.
func (s *server) deflate(text []byte) (*deflated, error) {
	writer := s.flateWriters.Get().(*flate.Writer)
	defer s.flateWriters.Put(writer)
	var blocks bytes.Buffer
	blocks.Grow(len(text) / 8)
	writer.Reset(&blocks)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Flush(); err != nil { // ends at a byte boundary without ending the stream
		return nil, err
	}
	return &deflated{
		blocks: bytes.Clone(blocks.Bytes()), // cloned to its exact size, because it is cached
		size:   len(text),
		crc:    crc32.ChecksumIEEE(text),
		shift:  crcShift(len(text)),
	}, nil
}

func newFlateWriter() any {
	writer, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return writer
}

// gzip returns the bytes before and after d.blocks in a gzip member with the content head, the text
// of d, and tail. Source: RFC 1952, 2.3.
func (d *deflated) gzip(head, tail []byte) (before, behind []byte) {
	const headerBytes, trailerBytes = 10, 8
	before = make([]byte, 0, headerBytes+storedBytesHead+len(head))
	before = append(before, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff) // deflate, no name, no time, unknown system
	before = appendStored(before, head)

	behind = make([]byte, 0, storedBytesHead+len(tail)+storedBytesHead+trailerBytes)
	behind = appendStored(behind, tail)
	behind = append(behind, 1, 0, 0, 0xff, 0xff) // the last block is empty
	crc := crcMultiply(d.shift, crc32.ChecksumIEEE(head)) ^ d.crc
	crc = crc32.Update(crc, crc32.IEEETable, tail)
	behind = binary.LittleEndian.AppendUint32(behind, crc)
	behind = binary.LittleEndian.AppendUint32(behind, uint32(len(head)+d.size+len(tail)))
	return before, behind
}

// Sizes of stored blocks. Source: RFC 1951, 3.2.4.
const (
	storedBytesMax  = 1<<16 - 1
	storedBytesHead = 5
)

// appendStored appends text as uncompressed blocks, none of them final.
func appendStored(blocks, text []byte) []byte {
	for len(text) > 0 {
		part := text[:min(len(text), storedBytesMax)]
		text = text[len(part):]
		blocks = append(blocks, 0)
		blocks = binary.LittleEndian.AppendUint16(blocks, uint16(len(part)))
		blocks = binary.LittleEndian.AppendUint16(blocks, ^uint16(len(part)))
		blocks = append(blocks, part...)
	}
	return blocks
}

// A CRC is a polynomial over GF(2), modulo the polynomial crc32.IEEE. Its coefficients are the
// bits, from the highest (x^0) to the lowest (x^31). The CRC of a text followed by n bytes is the
// CRC of the text times x^(8n), plus the CRC of the bytes.

// crcMultiply returns a·b.
func crcMultiply(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		overflow := b & 1
		b >>= 1
		if overflow != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}

// crcShift returns x^(8·size).
func crcShift(size int) uint32 {
	result, power := uint32(1)<<31, uint32(1)<<(31-8)
	for ; size > 0; size >>= 1 {
		if size&1 != 0 {
			result = crcMultiply(result, power)
		}
		power = crcMultiply(power, power)
	}
	return result
}

// compressedKey identifies the text of a table's or view's document without keeping the document in
// memory. The location of the metadata file is not enough, because a file that is registered again
// may have new content.
type compressedKey struct {
	table weak.Pointer[metadata.Document]
	refs  bool
	view  weak.Pointer[metadata.ViewDocument]
}

// keyOf returns the key of the text of an answer about a table, in the given form. For a staged
// table, which is not loaded again, it returns the zero key.
func keyOf(table *catalog.Table, form answerForm) compressedKey {
	if table.MetadataLocation == "" {
		return compressedKey{}
	}
	return compressedKey{table: weak.Make(table.Document), refs: form.refs}
}

// keyOfView returns the key of the text of a view's document.
func keyOfView(view *catalog.View) compressedKey {
	return compressedKey{view: weak.Make(view.Document)}
}

// compressedBytesEntry is the approximate overhead of a cache entry.
const compressedBytesEntry = 256

func (compressedKey) weight(d *deflated) uint32 {
	return uint32(min(len(d.blocks)+compressedBytesEntry, math.MaxUint32))
}

// deflatedText returns text, identified by key, in compressed form. Concurrent callers with the
// same key share the work. A text with the zero key is not cached.
func (s *server) deflatedText(ctx context.Context, key compressedKey, text []byte) (*deflated, error) {
	if key == (compressedKey{}) {
		return s.deflate(text)
	}
	if d, ok := s.compressed.GetIfPresent(key); ok {
		return d, nil
	}
	return s.compressed.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[compressedKey, *deflated](
		func(context.Context, compressedKey) (*deflated, error) { return s.deflate(text) }))
}
