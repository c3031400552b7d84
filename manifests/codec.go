package manifests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// codec compresses the payload of blocks. unpack returns at most bytesMax bytes, or ErrTooLarge.
type codec struct {
	pack   func(text []byte) ([]byte, error)
	unpack func(payload string, bytesMax int) (string, error)
}

// codecNamed returns the codec with the name from a header; "" is the null codec. The error is
// ErrForeign.
func codecNamed(name string) (codec, error) {
	switch name {
	case "", "null":
		return codec{packNull, unpackNull}, nil
	case "deflate":
		return codec{packDeflate, unpackDeflate}, nil
	case "snappy":
		return codec{packSnappy, unpackSnappy}, nil
	case "zstandard":
		return codec{packZstandard, unpackZstandard}, nil
	}
	return codec{}, fmt.Errorf("codec %.20q: %w", name, ErrForeign)
}

// Unpack decompresses the payload of a block, which the codec of that name compressed. It returns
// at most bytesMax bytes. The result shares no memory with packed, unless the codec is null.
//
// Errors: ErrTooLarge, before that much is in memory; ErrDamaged; ErrForeign for an unknown codec.
func Unpack(name string, packed []byte, bytesMax int) ([]byte, error) {
	c, err := codecNamed(name)
	if err != nil {
		return nil, err
	}
	text, err := c.unpack(unsafe.String(unsafe.SliceData(packed), len(packed)), bytesMax) // nothing writes to packed
	if err != nil || text == "" {
		return nil, err
	}
	return unsafe.Slice(unsafe.StringData(text), len(text)), nil // nothing writes to text
}

func packNull(text []byte) ([]byte, error) { return text, nil }

func unpackNull(payload string, bytesMax int) (string, error) {
	if len(payload) > bytesMax {
		return "", ErrTooLarge
	}
	return payload, nil
}

// Deflate readers and writers have tables of 40 KiB to 1 MiB, so they are reused.
var (
	deflateReaders = sync.Pool{New: func() any { return flate.NewReader(nil) }}
	deflateWriters = sync.Pool{New: func() any {
		writer, err := flate.NewWriter(nil, flate.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return writer
	}}
)

func packDeflate(text []byte) ([]byte, error) {
	writer := deflateWriters.Get().(*flate.Writer)
	defer deflateWriters.Put(writer)
	var out strings.Builder
	writer.Reset(&out)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	err := writer.Close()
	return []byte(out.String()), err
}

// unpackDeflate ignores bytes after the end of the stream. Some writers leave a part of a checksum
// there.
func unpackDeflate(payload string, bytesMax int) (string, error) {
	reader := deflateReaders.Get().(io.Reader)
	defer deflateReaders.Put(reader)
	if err := reader.(flate.Resetter).Reset(strings.NewReader(payload), nil); err != nil {
		return "", err
	}
	out := bounded{left: bytesMax}
	if _, err := io.Copy(&out, reader); errors.Is(err, ErrTooLarge) {
		return "", err
	} else if err != nil {
		return "", damaged("deflate: %v", err)
	}
	return out.String(), nil
}

// bounded is a builder that takes at most left further bytes.
type bounded struct {
	strings.Builder
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, ErrTooLarge
	}
	b.left -= len(p)
	return b.Builder.Write(p)
}

const checksumBytes = 4 // CRC-32 of the text, big endian, after snappy's bytes

func packSnappy(text []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint32(snappy.Encode(nil, text), crc32.ChecksumIEEE(text)), nil
}

func unpackSnappy(payload string, bytesMax int) (string, error) {
	if len(payload) < checksumBytes {
		return "", damaged("snappy: checksum is missing")
	}
	packed := []byte(payload)
	packed, sum := packed[:len(packed)-checksumBytes], packed[len(packed)-checksumBytes:]
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return "", damaged("snappy: %v", err)
	}
	if size > bytesMax {
		return "", ErrTooLarge
	}
	text, err := snappy.Decode(nil, packed)
	if err != nil {
		return "", damaged("snappy: %v", err)
	}
	if crc32.ChecksumIEEE(text) != binary.BigEndian.Uint32(sum) {
		return "", damaged("snappy: checksum differs")
	}
	return string(text), nil
}

func packZstandard(text []byte) ([]byte, error) {
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	return writer.EncodeAll(text, nil), writer.Close()
}

// zstandardWindowMax is the window that a reader has to allow any writer, even for few bytes.
// Source: RFC 8878, 3.1.1.1.2.
const zstandardWindowMax = 8 << 20

func unpackZstandard(payload string, bytesMax int) (string, error) {
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(max(bytesMax, zstandardWindowMax))))
	if err != nil {
		return "", err
	}
	defer reader.Close()
	text, err := reader.DecodeAll([]byte(payload), nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded), len(text) > bytesMax:
		return "", ErrTooLarge
	case err != nil:
		return "", damaged("zstandard: %v", err)
	}
	return string(text), nil
}
