package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"moorage"
	"moorage/catalog/directory"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/storage"
)

// Properties of a table or view that the catalog itself uses.
const (
	PropMetadataPath      = "write.metadata.path"
	PropMetadataCodec     = "write.metadata.compression-codec"
	propDeleteAfterCommit = "write.metadata.delete-after-commit.enabled"

	// The values of PropMetadataCodec, in any letter case.
	codecGzip = "gzip"
	codecNone = "none"
	// Endings of the name of a metadata file.
	endingPlain = ".metadata.json"
	endingGzip  = ".gz" + endingPlain

	// CodecQuoteMax is the maximum number of bytes of an unknown codec that the error quotes.
	CodecQuoteMax = 100
)

// Ref is where a document of a table or view is stored.
type Ref struct {
	Kind      *directory.Kind
	Warehouse string
	Pointer   registry.ID
	UUID      string // of the table or view
	Storage   storage.Store
	Location  string
	Version   string // of the file at Location; see FileVersion
}

// RefOf returns where in storage the document named in pointer is stored.
func RefOf(pointer registry.Pointer, storage storage.Store) Ref {
	return Ref{
		Kind: directory.KindOf(pointer), Warehouse: pointer.Warehouse, Pointer: pointer.ID, UUID: pointer.TableUUID,
		Storage: storage, Location: pointer.MetadataLocation,
		Version: FileVersion(pointer.MetadataLocation, pointer.Registration),
	}
}

// FileVersion returns a text that identifies the file named in a pointer: its location, and the ID
// of the register that named it. If the table's owner overwrites a file and registers it again,
// that is another version.
func FileVersion(location string, registration registry.ID) string {
	if registration.IsZero() {
		return location
	}
	return location + "\x00" + registration.String()
}

// isOf reports whether document belongs to the table or view of the reference.
func (p Ref) isOf(document Document) bool {
	return strings.EqualFold(document.UUID(), p.UUID)
}

// FileError adds a kind to the error of reading or writing a file. It also adds the location of the
// file, unless the error already names it.
func FileError(location string, err error) error {
	kind, text := moorage.KindUnavailable, ""
	switch {
	case errors.Is(err, storage.ErrNotFound):
		kind, text = moorage.KindNotFound, "Failed to open input stream for file: "+location
	case errors.Is(err, storage.ErrOutside):
		kind, text = moorage.KindBadRequest,
			"Location is outside the warehouse locations (add one with moorage warehouse change --allow-location): "+
				location
	case errors.Is(err, storage.ErrLocation):
		kind, text = moorage.KindBadRequest, "Malformed location: "+location
	}
	ident := location
	if strings.Contains(cmp.Or(text, err.Error()), location) {
		ident = ""
	}
	return &moorage.Error{Op: "documents.FileError", Ident: ident, Kind: kind, Message: text, Err: err}
}

// File is a metadata document and its file name. The file may not have been written yet.
type File struct {
	Warehouse registry.ID // of the table or view
	Pointer   registry.ID // of the table or view
	Location  string
	Document  Document
	Storage   storage.Store
}

// Name draws a name for next, the version after base, and returns next with it. For the first
// version, the document of base is nil. The name is <location>/metadata/<version, five
// digits>-<uuid>.metadata.json. The uuid shows when the name was drawn, and for which table
// (WroteFor). The property write.metadata.path can set the folder, and the ending shows whether the
// file is compressed. For an unknown codec, the error is KindIllegalArgument, unless base has the
// same codec. So a table that was registered with an unknown codec can be changed, and its files
// are not compressed.
func (d *Documents) Name(k *directory.Kind, next, base File) (File, error) {
	unique, err := d.drawFor(next)
	if err != nil {
		return File{}, err
	}
	ending := endingPlain
	switch codec := codecOf(k, next.Document); {
	case strings.EqualFold(codec, codecGzip):
		ending = endingGzip
	case strings.EqualFold(codec, codecNone), base.Document != nil && codec == codecOf(k, base.Document):
	default:
		return File{}, moorage.Errorf(moorage.KindIllegalArgument,
			"Invalid codec name: %s", moorage.Cut(codec, CodecQuoteMax))
	}
	version := strconv.Itoa(VersionNumber(base.Location) + 1)
	name := "00000"[min(len(version), 5):] + version + "-" + unique + ending
	next.Location = inMetadataFolder(next.Document, name)
	return next, checkLocation(next.Location) // checked before a transaction records the location
}

// inMetadataFolder returns the location of a file called name in the folder of the metadata files
// of document.
func inMetadataFolder(document Document, name string) string {
	if folder, ok := document.Property(PropMetadataPath); ok && folder != "" {
		return storage.Join(folder, name)
	}
	return storage.Join(document.Location(), "metadata", name)
}

// checkLocation refuses a location that is too long. It also refuses a location that engines
// interpret in different ways, even if the storage accepts it.
func checkLocation(location string) error {
	if _, err := storage.Parse(location); err != nil && len(location) <= storage.LocationBytesMax {
		return FileError(location, err)
	}
	if len(location) > storage.LocationBytesMax {
		return moorage.Errorf(moorage.KindBadRequest,
			"Location of a metadata file has %d bytes, at most %d are allowed", len(location), storage.LocationBytesMax)
	}
	return nil
}

// VersionNumber returns the number at the start of the name of a metadata file, and -1 if the name
// has no number.
func VersionNumber(location string) int {
	digits, _, _ := strings.Cut(path.Base(location), "-")
	version, err := strconv.Atoi(digits)
	if err != nil || version < 0 || version == math.MaxInt {
		return -1
	}
	return version
}

// IsCompressed reports whether the file is written compressed.
func (f File) IsCompressed() bool { return strings.HasSuffix(f.Location, endingGzip) }

// ending returns the ending of the file's name.
func (f File) ending() string {
	if f.IsCompressed() {
		return endingGzip
	}
	return endingPlain
}

// Content returns the bytes of the file.
func (f File) Content() ([]byte, error) {
	body := f.Document.Raw()
	if len(body) > BytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge,
			"The metadata would have %d bytes, at most %d are allowed", len(body), BytesMax)
	}
	if !f.IsCompressed() {
		return body, nil
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(body); err != nil {
		return nil, moorage.E("documents.Content", f.Location, moorage.KindInternal, err)
	}
	if err := writer.Close(); err != nil {
		return nil, moorage.E("documents.Content", f.Location, moorage.KindInternal, err)
	}
	return compressed.Bytes(), nil
}

// Write stores the file durably, before a record names it.
func (f File) Write(ctx context.Context) error {
	body, err := f.Content()
	if err != nil {
		return err
	}
	return CreateError(f.Location, f.Storage.Create(ctx, f.Location, body))
}

// MayRemain reports whether a write that failed with err may have left a file, which the caller
// must then delete. If the file existed before, it belongs to another writer.
func MayRemain(err error) bool {
	return moorage.KindOf(err) == moorage.KindUnavailable && !errors.Is(err, storage.ErrExists)
}

// CreateError adds a kind to the error of creating a file or folder. nil stays nil.
func CreateError(location string, err error) error {
	panicked, isPanic := errors.AsType[*worker.PanicError](err)
	switch {
	case err == nil:
		return nil
	case isPanic: // a panic in a goroutine of the storage
		return moorage.E("documents.CreateError", location, moorage.KindInternal,
			fmt.Errorf("%w\n%s", panicked, panicked.Stack))
	case errors.Is(err, storage.ErrNotFound): // a name that the storage cannot have
		return moorage.Errorf(moorage.KindBadRequest, "Cannot make a file at: %s", location)
	}
	return FileError(location, err)
}
