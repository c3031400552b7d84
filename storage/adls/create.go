package adls

import (
	"bytes"
	"context"
	"crypto/md5" // what Azure checks; it guards against accidents, not against people
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"moorage/storage"
)

const (
	// writeIDKey is the metadata in which a blob carries the id of the call that made it.
	writeIDKey = "moorage_write_id"
	// writeIDBytes makes sure that no two calls draw the same id.
	writeIDBytes = 16
)

// Create writes a new blob. See the package's comment.
func (s *Store) Create(ctx context.Context, location string, body []byte) error {
	b, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	return b.create(ctx, body)
}

// create makes a blob.
func (b blobName) create(ctx context.Context, body []byte) error {
	id := newWriteID()
	err := b.put(ctx, body, id)
	switch statusOf(err) {
	case http.StatusConflict, http.StatusPreconditionFailed:
		return b.settle(ctx, body, id, err)
	}
	if err != nil {
		return fmt.Errorf("create: %w", translate(b, err))
	}
	return nil
}

// put sends body as the content of a blob that is not there yet.
func (b blobName) put(ctx context.Context, body []byte, id string) error {
	sum := md5.Sum(body)
	_, err := b.client().Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
		Metadata:                map[string]*string{writeIDKey: &id},
		TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		HTTPHeaders:             &blob.HTTPHeaders{BlobContentMD5: sum[:]},
		AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)},
		},
	})
	if err != nil {
		return shorten(err)
	}
	return nil
}

// settle finds out what is in the way of a write that Azure refused because of refusal. A blob is
// there whole or not at all, so one that carries our id is ours.
func (b blobName) settle(ctx context.Context, body []byte, id string, refusal error) error {
	found, err := b.head(ctx)
	switch {
	case statusOf(err) == http.StatusNotFound:
		// Perhaps a file has the name of a folder that leads there; perhaps somebody deleted it.
		return fmt.Errorf("create %s: %w", b.location, refusal)
	case err != nil:
		return fmt.Errorf("create %s: the name is taken, and the look at its blob failed: %w", b.location, err)
	case isFolder(found.Metadata):
		return fmt.Errorf("create: %w", b.errFolder())
	case metadatum(found.Metadata, writeIDKey) != id:
		return fmt.Errorf("%w: %s", storage.ErrExists, b.location)
	case value(found.ContentLength) != int64(len(body)):
		return fmt.Errorf("create %s: Azure has %d bytes of %d", b.location, value(found.ContentLength), len(body))
	}
	return nil
}

// newWriteID draws the id of a write.
func newWriteID() string {
	var id [writeIDBytes]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}
