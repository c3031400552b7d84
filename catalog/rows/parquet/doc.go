// Package parquet reads the columns of Parquet files. A Parquet file is the input of a stranger:
// any client that may write to a table can write any bytes.
//
// It promises:
//
//   - Any bytes may be passed to it. For bytes that are not a Parquet file it returns ErrDamaged.
//     For a file that it cannot read it returns ErrUnsupported. For a file that exceeds a bound it
//     returns ErrTooLarge.
//   - Memory is bounded, whatever sizes and counts the file declares. Levels and values are decoded
//     one by one, so a run of a billion values takes no memory. Only compressed bytes, the present
//     page of a column, its dictionary and one value are in memory. A value is no longer than its
//     page. Memory bounds the pages and dictionaries, and Input.Read bounds the compressed bytes.
//   - Time is bounded by Input.Alive, which is called at each page and at least every aliveEvery
//     values.
//   - Every value has the type that the footer declares for its column.
//
// The package is pure: Input.Read reads the bytes. It knows no storage and no table.
//
// The library parquet-go is the oracle of the tests, and not the reader. It allocates what the
// pages of a file declare: a page of 20 bytes can demand gigabytes, and a process without memory
// ends.
//
// Source: Parquet format 2.11, parquet.thrift, Encodings.md, Compression.md, LogicalTypes.md.
package parquet

import (
	"errors"
	"fmt"
)

var (
	// ErrDamaged means that the bytes are not a Parquet file.
	ErrDamaged = errors.New("damaged")
	// ErrTooLarge means that reading a file would exceed a bound.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported means that a file has a feature that this package does not read.
	ErrUnsupported = errors.New("not supported")
)

func damaged(format string, arguments ...any) error {
	return fmt.Errorf(format+": %w", append(arguments, ErrDamaged)...)
}

func tooLarge(format string, arguments ...any) error {
	return fmt.Errorf(format+": %w", append(arguments, ErrTooLarge)...)
}

func unsupported(format string, arguments ...any) error {
	return fmt.Errorf(format+": %w", append(arguments, ErrUnsupported)...)
}

// Bounds of reading a file.
const (
	// footerBytesMax bounds the footer. It has some 100 bytes for each column chunk.
	footerBytesMax = 8 << 20
	// elementsMax bounds the elements of the schema.
	elementsMax = 1 << 16
	// groupsMax bounds the row groups. Row groups have ordinals of 16 bits.
	groupsMax = 1 << 15
	// depthMax bounds the nesting of groups in the schema, and of structures in the footer.
	depthMax = 64
	// pageBytesMax bounds an unpacked page. Writers end a page at 1 MiB, or after one large value.
	pageBytesMax = 16 << 20
	// pageValuesMax bounds the values of a page. A writer that ends pages by their packed size can
	// put a whole row group of equal values into one page.
	pageValuesMax = 1 << 26
	// headerBytesMax bounds the header of a page. It can have the smallest and the largest value.
	headerBytesMax = 8 << 20
	// firstBytes and moreBytes are how much of a column chunk is read at once: first, and then.
	firstBytes = 64 << 10
	moreBytes  = 256 << 10
	// gapBytes is the length of a gap between two ranges that is read too, to save a request.
	gapBytes = 16 << 10
	// aliveEvery is the number of values after which Input.Alive is called.
	aliveEvery = 4096
)

// Memory bounds the unpacked pages of several files, and what else a caller takes from it. It must
// not be used concurrently.
type Memory struct{ left int64 }

// NewMemory returns a bound of bytes.
func NewMemory(bytes int64) *Memory { return &Memory{left: bytes} }

// Take takes bytes of memory. If fewer are left, it takes none and returns ErrTooLarge.
func (m *Memory) Take(bytes int) error {
	if int64(bytes) > m.left {
		return tooLarge("too much memory would be taken")
	}
	m.left -= int64(bytes)
	return nil
}

// Give gives back bytes that were taken.
func (m *Memory) Give(bytes int) { m.left += int64(bytes) }

// Range is a part of a file.
type Range struct{ Offset, Length int64 }

// Input is a file to read. All fields are required.
type Input struct {
	// Size is the length of the file in bytes.
	Size int64
	// Read returns the bytes of each range, which lies within the file. It may refuse to read more.
	Read func(ranges []Range) ([][]byte, error)
	// Memory bounds the unpacked pages.
	Memory *Memory
	// Alive returns an error if reading should end.
	Alive func() error
}
