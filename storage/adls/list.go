package adls

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// listMax is the maximum number of blobs in one of Azure's listings.
	listMax = 5000
	// directoryType is the type of a folder in a listing of a hierarchical account.
	directoryType = "directory"
)

// List implements storage.Lister with one request. Folders are left out.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	under, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	parsed, err := storage.ParseFile(folder)
	if err != nil {
		return storage.Page{}, err
	}
	under.name += "/"
	listing := cloud.Listing{Folder: folder, After: after, Bucket: parsed, Prefix: under.name}
	answer, err := under.list(ctx, after, limit)
	if err != nil {
		return storage.Page{}, translate(under, err)
	}
	if answer.Date == nil || answer.Segment == nil {
		return storage.Page{}, fmt.Errorf("list %s: Azure's response is incomplete", folder)
	}
	page, err := listing.Page(*answer.Date, value(answer.NextMarker) != "", value(answer.NextMarker))
	if err != nil {
		return storage.Page{}, err
	}
	for _, found := range answer.Segment.BlobItems {
		name, properties := value(found.Name), found.Properties
		if properties == nil || isFolder(found.Metadata) || value(properties.ResourceType) == directoryType {
			continue
		}
		listing.Add(&page, name, storage.Info{
			Bytes: value(properties.ContentLength), Modified: value(properties.LastModified).UTC(),
		})
	}
	return page, nil
}

// list requests a page of the blobs whose names begin with b's name.
func (b blobName) list(ctx context.Context, after string, limit int) (container.ListBlobsFlatResponse, error) {
	options := &container.ListBlobsFlatOptions{
		Prefix: &b.name, MaxResults: to.Ptr(int32(min(limit, listMax))),
		Include: container.ListBlobsInclude{Metadata: true},
	}
	if after != "" {
		options.Marker = &after
	}
	answer, err := b.containerClient().NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return answer, shorten(err)
	}
	return answer, nil
}
