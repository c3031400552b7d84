package parquet

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Codecs, with the numbers of the format.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
	codecLZ4Raw = 7
)

var codecNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

// unpack decompresses a page. size is the unpacked length of the page, at most pageBytesMax. The
// result has that length, and may share memory with packed.
func (f *File) unpack(codec int, packed []byte, size int) (page []byte, err error) {
	switch codec {
	case codecNone:
		page = packed
	case codecSnappy:
		n, err := snappy.DecodedLen(packed)
		if err != nil || n != size {
			return nil, damaged("a page does not have %d bytes", size)
		}
		page, err = snappy.Decode(make([]byte, size), packed)
		if err != nil {
			return nil, damaged("snappy: %v", err)
		}
	case codecGzip:
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, damaged("gzip: %v", err)
		}
		page = make([]byte, size)
		if _, err := io.ReadFull(reader, page); err != nil {
			return nil, damaged("gzip: %v", err)
		}
		if n, err := reader.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			return nil, damaged("a page does not have %d bytes", size)
		}
	case codecZstd:
		if f.unzstd == nil {
			f.unzstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(pageBytesMax))
			if err != nil {
				return nil, err
			}
		}
		page, err = f.unzstd.DecodeAll(packed, make([]byte, 0, size))
		if err != nil {
			return nil, damaged("zstandard: %v", err)
		}
	case codecLZ4Raw:
		page, err = unpackLZ4(packed, size)
	default:
		if codec < len(codecNames) {
			return nil, unsupported("the codec %s is not read", codecNames[codec])
		}
		return nil, unsupported("the codec %d is not known", codec)
	}
	if err == nil && len(page) != size {
		err = damaged("a page has %d bytes, and %d in its header", len(page), size)
	}
	return page, err
}

// unpackLZ4 decompresses one LZ4 block. The result must have size bytes. Source: LZ4 block format.
func unpackLZ4(packed []byte, size int) ([]byte, error) {
	out, at := make([]byte, 0, size), 0
	// length reads the bytes that extend a length of 15.
	length := func(n int) (int, bool) {
		for more := byte(255); n >= 15 && more == 255; at++ {
			if at == len(packed) || n > size {
				return 0, false
			}
			more = packed[at]
			n += int(more)
		}
		return n, true
	}
	for at < len(packed) {
		token := int(packed[at])
		at++
		literals, ok := length(token >> 4)
		if !ok || literals > len(packed)-at || literals > size-len(out) {
			return nil, damaged("lz4: a literal of %d bytes", literals)
		}
		out = append(out, packed[at:at+literals]...)
		if at += literals; at == len(packed) {
			break // the last sequence has no match
		}
		if at+2 > len(packed) {
			return nil, damaged("lz4: an offset is missing")
		}
		offset := int(packed[at]) | int(packed[at+1])<<8
		at += 2
		match, ok := length(token & 15)
		if match += 4; !ok || offset == 0 || offset > len(out) || match > size-len(out) {
			return nil, damaged("lz4: a match of %d bytes at %d", match, offset)
		}
		for ; match > 0; match-- { // the match may overlap its own output
			out = append(out, out[len(out)-offset])
		}
	}
	return out, nil
}
