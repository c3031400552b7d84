package adls

import (
	"bytes"
	"context"
	"crypto/md5" // the checksum that Azure verifies; it protects against accidents, not against attacks
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"moorage/storage/cloud"
)

const (
	// writeIDKey is the key, in a blob's metadata, of the id of the call that made the blob.
	writeIDKey = "moorage_write_id"
)

// Create writes a new blob, as described in the package comment.
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

// put sends body as the content of a blob that does not exist yet.
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

// settle finds out why Azure refused a write with refusal.
func (b blobName) settle(ctx context.Context, body []byte, id string, refusal error) error {
	found, err := b.head(ctx)
	switch {
	case statusOf(err) == http.StatusNotFound:
		// Perhaps a file has the name of a folder in the blob's path, or the blob was deleted in
		// the meantime.
		return fmt.Errorf("create %s: %w", b.location, refusal)
	case err != nil:
		return fmt.Errorf("create %s: the name is taken, and reading the blob's properties failed: %w", b.location, err)
	case isFolder(found.Metadata):
		return fmt.Errorf("create: %w", b.errFolder())
	}
	return cloud.Settle(b.location, cloud.Written{ID: id, Bytes: int64(len(body))},
		cloud.Written{ID: metadatum(found.Metadata, writeIDKey), Bytes: value(found.ContentLength)})
}

// newWriteID draws the id of a write.
func newWriteID() string {
	id, _ := cloud.NewWriteID(rand.Reader) // it never fails
	return id
}
