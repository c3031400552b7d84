package manifests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// codec compresses and decompresses the payload of blocks. Both functions append to out and return
// it, even with an error. unpack returns ErrTooLarge instead of appending more than bytesMax bytes.
type codec struct {
	pack   func(out, text []byte) ([]byte, error)
	unpack func(out []byte, payload string, bytesMax int) ([]byte, error)
}

// codecNamed returns the codec with the given name, as in a header; "" is the null codec. It
// returns ErrForeign for an unknown name.
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

// Unpack decompresses the payload of a block. name is the name of the codec that compressed it.
// Unpack returns at most bytesMax bytes. The result shares no memory with packed.
//
// Errors: ErrTooLarge, before more than bytesMax bytes are in memory; ErrDamaged; ErrForeign for an
// unknown codec.
func Unpack(name string, packed []byte, bytesMax int) ([]byte, error) {
	c, err := codecNamed(name)
	if err != nil {
		return nil, err
	}
	text, err := c.unpack(nil, textOf(packed), bytesMax)
	if err != nil {
		return nil, err
	}
	return text, nil
}

func packNull(out, text []byte) ([]byte, error) { return append(out, text...), nil }

func unpackNull(out []byte, payload string, bytesMax int) ([]byte, error) {
	if len(payload) > bytesMax {
		return out, ErrTooLarge
	}
	return append(out, payload...), nil
}

// Pools of deflate readers and writers. They are reused because their tables take 40 KiB to 1 MiB.
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

func packDeflate(out, text []byte) ([]byte, error) {
	writer := deflateWriters.Get().(*flate.Writer)
	defer deflateWriters.Put(writer)
	packed := bounded{text: out, left: math.MaxInt}
	writer.Reset(&packed)
	if _, err := writer.Write(text); err != nil {
		return out, err
	}
	err := writer.Close()
	return packed.text, err
}

// unpackDeflate decompresses payload. It ignores bytes after the end of the stream, because some
// writers leave a part of a checksum there.
func unpackDeflate(out []byte, payload string, bytesMax int) ([]byte, error) {
	reader := deflateReaders.Get().(io.Reader)
	defer deflateReaders.Put(reader)
	if err := reader.(flate.Resetter).Reset(strings.NewReader(payload), nil); err != nil {
		return out, err
	}
	unpacked := bounded{text: out, left: bytesMax}
	if _, err := io.Copy(&unpacked, reader); errors.Is(err, ErrTooLarge) {
		return unpacked.text, err
	} else if err != nil {
		return unpacked.text, damaged("deflate: %v", err)
	}
	return unpacked.text, nil
}

// bounded is a writer that appends at most left more bytes to text.
type bounded struct {
	text []byte
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, ErrTooLarge
	}
	b.left -= len(p)
	b.text = append(b.text, p...)
	return len(p), nil
}

const checksumBytes = 4 // CRC-32 of the text, big endian, after snappy's bytes

func packSnappy(out, text []byte) ([]byte, error) {
	out = append(out, snappy.Encode(nil, text)...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(text)), nil
}

func unpackSnappy(out []byte, payload string, bytesMax int) ([]byte, error) {
	if len(payload) < checksumBytes {
		return out, damaged("snappy: checksum is missing")
	}
	packed := unsafe.Slice(unsafe.StringData(payload), len(payload)) // nothing writes to it
	packed, sum := packed[:len(packed)-checksumBytes], packed[len(packed)-checksumBytes:]
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return out, damaged("snappy: %v", err)
	}
	if size > bytesMax {
		return out, ErrTooLarge
	}
	start := len(out)
	out = slices.Grow(out, size)
	text, err := snappy.Decode(out[start:start+size], packed)
	if err != nil {
		return out, damaged("snappy: %v", err)
	}
	if crc32.ChecksumIEEE(text) != binary.BigEndian.Uint32(sum) {
		return out, damaged("snappy: checksum differs")
	}
	return out[:start+size], nil
}

func packZstandard(out, text []byte) ([]byte, error) {
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return out, err
	}
	return writer.EncodeAll(text, out), writer.Close()
}

// zstandardWindowMax is the window that every reader should support, even for short content.
// Source: RFC 8878, 3.1.1.1.2.
const zstandardWindowMax = 8 << 20

func unpackZstandard(out []byte, payload string, bytesMax int) ([]byte, error) {
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(max(bytesMax, zstandardWindowMax))))
	if err != nil {
		return out, err
	}
	defer reader.Close()
	text, err := reader.DecodeAll(unsafe.Slice(unsafe.StringData(payload), len(payload)), out)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded),
		len(text)-len(out) > bytesMax:
		return out, ErrTooLarge
	case err != nil:
		return out, damaged("zstandard: %v", err)
	}
	return text, nil
}
