package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"moorage"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/storage"
)

// Properties of a table or view that the catalog itself acts on.
const (
	propMetadataPath      = "write.metadata.path"
	propMetadataCodec     = "write.metadata.compression-codec"
	propDeleteAfterCommit = "write.metadata.delete-after-commit.enabled"

	// The values of propMetadataCodec, in any letter case.
	codecGzip = "gzip"
	codecNone = "none"
	// codecToldMax is how many bytes of one that is not known its refusal repeats.
	codecToldMax = 100
)

// documentPlace is where a document of a table or view is.
type documentPlace struct {
	kind      *kind
	warehouse string
	pointer   registry.ID
	uuid      string // of the table or view
	storage   storage.Store
	location  string
	edition   string // of the file at location; see editionOf
}

// placeOfDocument returns where the document is that pointer names, in storage.
func placeOfDocument(pointer registry.Pointer, storage storage.Store) documentPlace {
	return documentPlace{kindOf(pointer), pointer.Warehouse, pointer.ID, pointer.TableUUID, storage, pointer.MetadataLocation, editionOf(pointer.MetadataLocation, pointer.Registration)}
}

// editionOf returns what tells the file that a pointer names from all others, and, if its owner writes it anew and registers it again, from what
// it was before: its location, and which register named it.
func editionOf(location string, registration registry.ID) string {
	if registration.IsZero() {
		return location
	}
	return location + "\x00" + registration.String()
}

// isOf tells whether a document that is at the place is one of its table or view.
func (p documentPlace) isOf(document document) bool {
	return strings.EqualFold(document.UUID(), p.uuid)
}

// fileError gives the failure of reading or writing a file its kind, and its location unless it names that itself.
func fileError(location string, err error) error {
	kind, text := moorage.KindUnavailable, ""
	switch {
	case errors.Is(err, storage.ErrNotFound):
		kind, text = moorage.KindNotFound, "Failed to open input stream for file: "+location
	case errors.Is(err, storage.ErrOutside):
		kind, text = moorage.KindBadRequest, "Location is outside of those that the warehouse allows (--allow-location): "+location
	case errors.Is(err, storage.ErrLocation):
		kind, text = moorage.KindBadRequest, "Malformed location: "+location
	}
	ident := location
	if strings.Contains(cmp.Or(text, err.Error()), location) {
		ident = ""
	}
	return &moorage.Error{Op: "catalog.file", Ident: ident, Kind: kind, Message: text, Err: err}
}

// metadataFile is a metadata document and the name under which it is, or will be, stored.
type metadataFile struct {
	pointer  registry.ID // of the table or view
	location string
	document document
	storage  storage.Store
}

// nameFile draws a name for the version of document that follows base, which is zero for the first:
// <location>/metadata/<version, five digits>-<uuid>.metadata.json, where the folder can be set
// by the property write.metadata.path and the ending says whether the file is compressed. A codec that is not known is
// KindIllegalArgument, unless it is that of base: what was registered with one can be changed, and its files are not compressed.
func (c *Catalog) nameFile(k *kind, pointer registry.ID, store storage.Store, document document, base metadataFile) (metadataFile, error) {
	unique, err := c.ledger.NewUUID()
	if err != nil {
		return metadataFile{}, err
	}
	ending := ".metadata.json"
	switch codec := k.codecOf(document); {
	case strings.EqualFold(codec, codecGzip):
		ending = ".gz" + ending
	case strings.EqualFold(codec, codecNone), base.document != nil && codec == k.codecOf(base.document):
	default:
		return metadataFile{}, moorage.Errorf(moorage.KindIllegalArgument, "Invalid codec name: %s", cut(codec, codecToldMax))
	}
	version := strconv.Itoa(fileVersion(base.location) + 1)
	name := "00000"[min(len(version), 5):] + version + "-" + unique + ending
	location := ""
	if folder, ok := document.Property(propMetadataPath); ok && folder != "" {
		location = storage.Join(folder, name)
	} else {
		location = storage.Join(document.Location(), "metadata", name)
	}
	if len(location) > storage.LocationBytesMax { // before a transaction records it
		return metadataFile{}, moorage.Errorf(moorage.KindBadRequest, "Location of a metadata file has %d bytes, at most %d are allowed", len(location), storage.LocationBytesMax)
	}
	return metadataFile{pointer, location, document, store}, nil
}

// fileVersion returns the number that the name of a metadata file begins with, -1 if there is none.
func fileVersion(location string) int {
	digits, _, _ := strings.Cut(path.Base(location), "-")
	version, err := strconv.Atoi(digits)
	if err != nil || version < 0 || version == math.MaxInt {
		return -1
	}
	return version
}

func (f metadataFile) isCompressed() bool { return strings.HasSuffix(f.location, ".gz.metadata.json") }

// content returns the bytes of the file.
func (f metadataFile) content() ([]byte, error) {
	body := f.document.Raw()
	if len(body) > metadataBytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge, "The metadata would have %d bytes, at most %d can be read again", len(body), metadataBytesMax)
	}
	if !f.isCompressed() {
		return body, nil
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(body); err != nil {
		return nil, moorage.E("compress metadata", f.location, moorage.KindInternal, err)
	}
	if err := writer.Close(); err != nil {
		return nil, moorage.E("compress metadata", f.location, moorage.KindInternal, err)
	}
	return compressed.Bytes(), nil
}

// write stores the file, durably, before anything names it.
func (f metadataFile) write(ctx context.Context) error {
	body, err := f.content()
	if err != nil {
		return err
	}
	return createError(f.location, f.storage.Create(ctx, f.location, body))
}

// createError gives the failure of making a file or folder its kind; nil stays nil.
func createError(location string, err error) error {
	panicked, isPanic := errors.AsType[*worker.PanicError](err)
	switch {
	case err == nil:
		return nil
	case isPanic: // in a goroutine of the storage
		return panicError("catalog.file", location, panicked)
	case errors.Is(err, storage.ErrNotFound): // a name that the storage cannot have
		return moorage.Errorf(moorage.KindBadRequest, "Cannot make a file at: %s", location)
	}
	return fileError(location, err)
}

// publish writes file, then applies batch, which names it, as the commit change, which is answered by answer. If that certainly
// did not and will not happen the file is unwanted, and the caller has it discarded; if it may have, the file stays. The ETags are those of
// batch.Writes, as far as they are known.
func (c *Catalog) publish(ctx context.Context, file metadataFile, change registry.Change, batch registry.Batch, answer Outcome) (etags []registry.ETag, unwanted bool, err error) {
	if err := file.write(ctx); err != nil {
		return nil, moorage.KindOf(err) == moorage.KindUnavailable && !errors.Is(err, storage.ErrExists), err
	}
	etags, err = c.apply(ctx, change, batch, answer)
	if err == nil {
		c.documents.set(file.pointer, file.location, file.document)
	}
	return etags, err != nil && moorage.KindOf(err) != moorage.KindCommitUnknown, err
}
