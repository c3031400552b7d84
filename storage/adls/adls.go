package adls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// nameCharactersMax is the maximum length of a blob's name.
	nameCharactersMax = 1024
	// folderKey is the metadata key that marks an entry as a folder.
	folderKey = "hdi_isfolder"
)

// PyIceberg's names for the access settings of an account.
const (
	clientAccountName   = "adls.account-name"
	clientBlobAuthority = "adls.blob-storage-authority"
	clientBlobScheme    = "adls.blob-storage-scheme"
	clientDFSAuthority  = "adls.dfs-storage-authority"
	clientDFSScheme     = "adls.dfs-storage-scheme"
)

// Store is a storage.Store over the blobs of accounts. It is safe for concurrent use, even by
// several processes.
type Store struct {
	client       *Client
	roots        cloud.Roots
	clientConfig map[string]string
}

// blobName names a blob.
type blobName struct {
	location  string // in the caller's spelling
	account   *account
	container string
	name      string
}

// Within returns a store of the blobs at and below roots, which are locations. It sends nothing. It
// returns ErrLocation if one of them is not an Azure location.
func (c *Client) Within(roots []string) (*Store, error) {
	parsed, err := cloud.ParseRoots(storage.SchemeAzure, "Azure", roots)
	if err != nil {
		return nil, err
	}
	for i, root := range parsed {
		if c.options.Endpoint != "" && hostOf(root) != hostOf(parsed[0]) {
			return nil, fmt.Errorf("adls: %s and %s are in two accounts, and %s is the address of one", parsed[0],
				roots[i], OptionEndpoint)
		}
		if _, err := c.account(root.Authority); err != nil {
			return nil, err
		}
	}
	return &Store{client: c, roots: parsed, clientConfig: newClientConfig(c.options, parsed)}, nil
}

// hostOf returns the host of a location's account.
func hostOf(location storage.Location) string {
	_, host, _ := strings.Cut(location.Authority, "@")
	return host
}

// newClientConfig returns the settings that an engine needs, in addition to a location, to reach
// the same account. It is empty if roots have several accounts.
func newClientConfig(options Options, roots []storage.Location) map[string]string {
	var hosts []string
	for _, root := range roots {
		hosts = append(hosts, hostOf(root))
	}
	if hosts = slices.Compact(hosts); len(hosts) != 1 {
		return nil
	}
	name, _, _ := strings.Cut(hosts[0], ".")
	config := map[string]string{clientAccountName: name}
	if scheme, authority, found := strings.Cut(options.Endpoint, "://"); found {
		authority, _, _ = strings.Cut(authority, "/")
		config[clientBlobAuthority], config[clientDFSAuthority] = authority, authority
		config[clientBlobScheme], config[clientDFSScheme] = scheme, scheme
	} else if suffix := strings.TrimPrefix(hosts[0], name); suffix != ".dfs.core.windows.net" {
		config[clientBlobAuthority] = strings.TrimPrefix(storage.AzureBlobHost(hosts[0]), name)
		config[clientDFSAuthority] = suffix
	}
	return config
}

// ClientConfig returns the settings that PyIceberg needs to reach the account. Other clients need
// only the location.
func (s *Store) ClientConfig() map[string]string { return s.clientConfig }

// Open returns the content of a blob. A caller that reads to the end without an error has the
// complete content, which matches Azure's MD5. Reading fails once ctx has ended. If the connection
// breaks during the read, the reader reconnects, a few times at most.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	b, err := s.locate(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	opened, info, err := b.get(ctx)
	if err != nil {
		return nil, storage.Info{}, translate(b, err)
	}
	return opened, info, nil
}

// ReadRange returns a part of a blob.
func (s *Store) ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error) {
	b, err := s.locate(ctx, location)
	if err != nil {
		return nil, err
	}
	part, err := cloud.ReadRange(location, offset, length, func(offset, length int64) (io.ReadCloser, string, error) {
		answer, err := b.client().DownloadStream(ctx, &blob.DownloadStreamOptions{
			Range: blob.HTTPRange{Offset: offset, Count: length},
		})
		if err != nil {
			err = shorten(err)
			return nil, "", cloud.OrShort(err, statusOf(err))
		}
		if isFolder(answer.Metadata) {
			return nil, "", errors.Join(b.errFolder(), answer.Body.Close())
		}
		return answer.Body, value(answer.ContentRange), nil
	})
	if err != nil {
		return nil, translate(b, err)
	}
	return part, nil
}

// Stat describes a blob.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	b, err := s.locate(ctx, location)
	if err != nil {
		return storage.Info{}, err
	}
	found, err := b.head(ctx)
	if err != nil {
		return storage.Info{}, translate(b, err)
	}
	if isFolder(found.Metadata) {
		return storage.Info{}, b.errFolder()
	}
	return storage.Info{Bytes: value(found.ContentLength), Modified: value(found.LastModified).UTC()}, nil
}

// head requests the properties of a blob.
func (b blobName) head(ctx context.Context) (blob.GetPropertiesResponse, error) {
	found, err := b.client().GetProperties(ctx, nil)
	if err != nil {
		return found, shorten(err)
	}
	return found, nil
}

// client returns the SDK's client for a blob.
func (b blobName) client() *blockblob.Client { return b.containerClient().NewBlockBlobClient(b.name) }

// containerClient returns the SDK's client for the container of a blob.
func (b blobName) containerClient() *container.Client {
	return b.account.service.NewContainerClient(b.container)
}

// errFolder is the error for a blob that is a folder.
func (b blobName) errFolder() error {
	return fmt.Errorf("%w: %s: it is a folder", storage.ErrNotFound, b.location)
}

// isFolder reports whether metadata mark a folder of a hierarchical account.
func isFolder(metadata map[string]*string) bool {
	return strings.EqualFold(metadatum(metadata, folderKey), "true")
}

// metadatum returns a value of a blob's metadata, or "" if it is missing. It ignores case, because
// the HTTP client capitalizes names.
func metadatum(metadata map[string]*string, name string) string {
	for key, found := range metadata {
		if strings.EqualFold(key, name) {
			return value(found)
		}
	}
	return ""
}

// locate returns the blob at location. It returns ErrNotFound if no blob can have that location.
func (s *Store) locate(ctx context.Context, location string) (blobName, error) {
	parsed, err := s.roots.File(ctx, location)
	if err != nil {
		return blobName{}, err
	}
	named, err := s.name(parsed)
	named.location = location
	if err == nil && (named.name == "" || utf8.RuneCountInString(named.name) > nameCharactersMax) {
		err = fmt.Errorf("%w: %s: the name of a blob has 1 to %d characters", storage.ErrNotFound, location,
			nameCharactersMax)
	}
	return named, err
}

// name returns the blob at a location, which may have an empty name.
func (s *Store) name(location storage.Location) (blobName, error) {
	account, err := s.client.account(location.Authority)
	if err != nil {
		return blobName{}, err
	}
	container, _, _ := strings.Cut(location.Authority, "@")
	return blobName{location.String(), account, container, location.Path[1:]}, nil
}

// value returns the target of a pointer from the SDK, or the zero value for nil.
func value[T int64 | string | time.Time](pointer *T) (found T) {
	if pointer != nil {
		found = *pointer
	}
	return found
}

var (
	_ storage.Store  = (*Store)(nil)
	_ storage.Remote = (*Store)(nil)
	_ storage.Lister = (*Store)(nil)
)
