package manifests

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// Bounds of reading one file. Clients write lists and manifests, and a few megabytes can unpack to
// any number of names. A task that reads them is retried after each restart, so a file must not
// exhaust the server. A table within these limits can have up to a trillion files.
const (
	// ListedMax is the maximum number of manifests in one list. Each commit rewrites the whole
	// list, so writers have problems long before that number.
	ListedMax = 1 << 18
	// EntriesMax is the maximum number of files in one manifest. Engines begin a new manifest at 8
	// MiB, which is about 100,000 files.
	EntriesMax = 1 << 22
	// NamesBytesMax is the maximum total length of the names in one list.
	NamesBytesMax = 64 << 20
	// nameBytesMax is the maximum length of a name. Object stores allow 1,024 bytes, and file
	// systems 4,096.
	nameBytesMax = 8 << 10
	// headerBytesMax is the maximum number of bytes before the first block. They contain the
	// schemas of the file and of the table, about 1 MB for 10,000 columns.
	headerBytesMax = 4 << 20
	// blockBytesMax is the maximum size of a block, both packed and unpacked. A reader has one
	// block in memory. Writers end a block after the record that makes it reach 64 kB. In a table
	// with 10,000 columns, a record has 1 MB.
	blockBytesMax = 8 << 20
	// fileBytesMax is the maximum unpacked size of one file.
	fileBytesMax = 4 << 30
)

// ErrTooMuch means that a file exceeds a limit of this package. A retry would fail too.
var ErrTooMuch = errors.New("more than is read")

func tooMuch(format string, arguments ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTooMuch}, arguments...)...)
}

// openStream returns a reader of an Avro file. The reader uses the schema that choose derives from
// the file's own schema.
func openStream(body io.Reader, choose func(*ocf.Reader) (*avro.Schema, error)) (*ocf.Reader, error) {
	options := []ocf.ReaderOpt{
		ocf.WithReaderSchemaFunc(choose), ocf.WithMaxBlockBytes(blockBytesMax),
		ocf.WithMaxDecompressedBlockBytes(blockBytesMax),
	}
	left := int64(fileBytesMax)
	for _, name := range []string{"null", "deflate", "snappy", "zstandard"} {
		options = append(options, ocf.WithCodec(boundedCodec{name, &left}))
	}
	header := &headerReader{from: body, left: headerBytesMax}
	reader, err := guard(func() (*ocf.Reader, error) { return ocf.NewReader(header, options...) })
	header.left = math.MaxInt64
	return reader, err
}

// headerReader reads at most left more bytes.
type headerReader struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (r *headerReader) Read(into []byte) (int, error) {
	if r.left <= 0 {
		return 0, tooMuch("a header of over %d bytes", headerBytesMax)
	}
	n, err := r.from.Read(into[:min(int64(len(into)), r.left)])
	r.left -= int64(n)
	return n, err
}

// boundedCodec unpacks the blocks of one file, within the limits. It cannot pack.
type boundedCodec struct {
	name string
	left *int64 // bytes that the file may still unpack to
}

// Name implements ocf.Codec.
func (c boundedCodec) Name() string { return c.name }

// Close implements ocf.Codec.
func (c boundedCodec) Close() error { return nil }

// Compress implements ocf.Codec.
func (c boundedCodec) Compress([]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

// Decompress implements ocf.Codec.
func (c boundedCodec) Decompress(packed []byte) ([]byte, error) {
	return c.DecompressBounded(packed, blockBytesMax)
}

// DecompressBounded implements ocf.BoundedDecompressor.
func (c boundedCodec) DecompressBounded(packed []byte, bytesMax int64) ([]byte, error) {
	block, err := Unpack(c.name, packed, int(min(bytesMax, *c.left)))
	if errors.Is(err, ErrTooLarge) {
		return nil, tooMuch("a block of over %d bytes, or %d bytes in all", blockBytesMax, int64(fileBytesMax))
	}
	*c.left -= int64(len(block))
	return block, err
}

// checkName refuses a name that is not valid for a file.
func checkName(name string) error {
	if len(name) > nameBytesMax {
		return tooMuch("a name of %d bytes", len(name))
	}
	return nil
}
