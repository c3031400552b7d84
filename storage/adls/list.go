package adls

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"moorage/storage"
)

const (
	// listMax is how many blobs Azure lists in one answer.
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
	under.name += "/"
	answer, err := under.list(ctx, after, limit)
	if err != nil {
		return storage.Page{}, translate(under, err)
	}
	if answer.Date == nil || answer.Segment == nil {
		return storage.Page{}, fmt.Errorf("list %s: the answer of Azure is not whole", folder)
	}
	page := storage.Page{Now: *answer.Date, Next: value(answer.NextMarker)}
	if page.Next != "" && page.Next == after {
		return storage.Page{}, fmt.Errorf("list %s: Azure has more, and does not say how to go on", folder)
	}
	parsed, err := storage.ParseFile(folder)
	if err != nil {
		return storage.Page{}, err
	}
	for _, found := range answer.Segment.BlobItems {
		name, properties := value(found.Name), found.Properties
		if properties == nil || isFolder(found.Metadata) || value(properties.ResourceType) == directoryType {
			continue
		}
		location := storage.Location{Scheme: parsed.Scheme, Authority: parsed.Authority, Path: "/" + name}.String()
		again, err := storage.ParseFile(location)
		if err != nil || again.String() != location || !strings.HasPrefix(name, under.name) {
			continue
		}
		page.Files = append(page.Files, storage.Listed{Location: location, Info: storage.Info{
			Bytes: value(properties.ContentLength), Modified: value(properties.LastModified).UTC(),
		}})
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
	answer, err := b.in().NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return answer, shorten(err)
	}
	return answer, nil
}
