package adls

import (
	"context"
	"crypto/md5" // the checksum that Azure keeps; it protects against accidents, not against attacks
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"moorage/storage"
	"moorage/storage/cloud"
)

// get requests a blob. The body can be read until ctx ends. It must be closed.
func (b blobName) get(ctx context.Context) (io.ReadCloser, storage.Info, error) {
	answer, err := b.client().DownloadStream(ctx, nil)
	if err != nil {
		return nil, storage.Info{}, shorten(err)
	}
	if answer.ContentLength == nil {
		return nil, storage.Info{}, errors.Join(errors.New("the response has no length of the blob"),
			answer.Body.Close())
	}
	if isFolder(answer.Metadata) {
		return nil, storage.Info{}, errors.Join(b.errFolder(), answer.Body.Close())
	}
	content := cloud.Content{
		Name: b.location, Bytes: *answer.ContentLength,
		Resume: func(offset int64) (io.ReadCloser, error) { return b.getFrom(ctx, answer.ETag, offset) },
	}
	if len(answer.ContentMD5) == md5.Size { // blobs written in blocks may have none
		content.Sum, content.Want = md5.New(), answer.ContentMD5
	}
	info := storage.Info{Bytes: content.Bytes, Modified: value(answer.LastModified).UTC()}
	return cloud.Resume(answer.Body, content), info, nil
}

// getFrom requests the bytes of a blob from offset on, on condition that the blob still has the
// version etag.
func (b blobName) getFrom(ctx context.Context, etag *azcore.ETag, offset int64) (io.ReadCloser, error) {
	answer, err := b.client().DownloadStream(ctx, &blob.DownloadStreamOptions{
		Range: blob.HTTPRange{Offset: offset},
		AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag},
		},
	})
	if err != nil {
		return nil, shorten(err)
	}
	if got := value(answer.ContentRange); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
		return nil, errors.Join(fmt.Errorf("Azure returned the range %q", got), answer.Body.Close())
	}
	return answer.Body, nil
}
