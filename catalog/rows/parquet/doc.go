// Package parquet reads the columns of Parquet files. A Parquet file is untrusted input: any client
// with write access to a table can write any bytes.
//
// The package promises:
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
// The package does no I/O of its own: Input.Read reads the bytes. It knows nothing about storage or
// tables.
//
// The library parquet-go is the oracle of the tests, but is not used to read files. It allocates as
// much memory as a page declares, so a page of 20 bytes can demand gigabytes. That could crash the
// server.
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
	// headerBytesMax bounds the header of a page. The header can contain the smallest and the
	// largest value.
	headerBytesMax = 8 << 20
	// The first read of a column chunk reads firstBytes, and each later one moreBytes.
	firstBytes = 64 << 10
	moreBytes  = 256 << 10
	// Two ranges with a gap of at most gapBytes between them are read together, to save a request.
	gapBytes = 16 << 10
	// aliveEvery is the number of values after which Input.Alive is called.
	aliveEvery = 4096
)

// Memory bounds the unpacked pages of several files, and any further memory that a caller takes
// from it. It must not be used concurrently.
type Memory struct{ left int64 }

// NewMemory returns a Memory of the given number of bytes.
func NewMemory(bytes int64) *Memory { return &Memory{left: bytes} }

// Take takes bytes of memory. If fewer are left, it takes none and returns ErrTooLarge.
func (m *Memory) Take(bytes int) error {
	if int64(bytes) > m.left {
		return tooLarge("too much memory would be taken")
	}
	m.left -= int64(bytes)
	return nil
}

// Give returns bytes of memory that were taken.
func (m *Memory) Give(bytes int) { m.left += int64(bytes) }

// Range is a part of a file.
type Range struct{ Offset, Length int64 }

// Input is a file to read. All fields are required.
type Input struct {
	// Size is the length of the file in bytes.
	Size int64
	// Read returns the bytes of each range. The ranges lie within the file. Read may return an
	// error to stop reading.
	Read func(ranges []Range) ([][]byte, error)
	// Memory bounds the unpacked pages.
	Memory *Memory
	// Alive returns an error if reading should stop.
	Alive func() error
}
