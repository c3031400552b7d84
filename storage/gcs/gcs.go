package gcs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"moorage/storage"
	"moorage/storage/cloud"
)

// nameBytesMax is the maximum length of an object's name.
const nameBytesMax = 1024

// bucketPattern is the form of bucket names, which are used unescaped in paths and conditions.
// Source: Cloud Storage, "About Cloud Storage buckets".
var bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// Store is a storage.Store over objects. It is safe for concurrent use, even by several processes.
type Store struct {
	client *Client
	roots  cloud.Roots
}

// object names an object.
type object struct {
	location     string // in the caller's spelling
	bucket, name string
}

// Within returns a store of the objects at and below roots, which are locations. It sends nothing.
// It returns ErrLocation if a root is not a location of Google Cloud Storage.
func (c *Client) Within(roots []string) (*Store, error) {
	parsed, err := cloud.ParseRoots(storage.SchemeGCS, "Google Cloud Storage", roots)
	if err != nil {
		return nil, err
	}
	for i, root := range parsed {
		if !bucketPattern.MatchString(root.Authority) {
			return nil, fmt.Errorf("%w: %q: that is not a valid name of a bucket", storage.ErrLocation, roots[i])
		}
	}
	return &Store{client: c, roots: parsed}, nil
}

// ClientConfig returns how an engine reaches the server.
func (s *Store) ClientConfig() map[string]string { return s.client.clientConfig }

// Open returns the content of an object. A caller that reads to the end without an error has the
// complete content, which matches the server's checksum. Reading fails once ctx has ended. If the
// connection breaks during the read, the reader reconnects, a few times at most.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	object, err := s.locate(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := s.client.open(ctx, object)
	if err != nil {
		return nil, storage.Info{}, s.client.translate(ctx, object, err)
	}
	return body, info, nil
}

// ReadRange returns a part of an object.
func (s *Store) ReadRange(ctx context.Context, location string, offset, length int64) ([]byte, error) {
	object, err := s.locate(ctx, location)
	if err != nil {
		return nil, err
	}
	part, err := cloud.ReadRange(location, offset, length, func(offset, length int64) (io.ReadCloser, string, error) {
		var opened *http.Response
		err := s.client.do(ctx, request{
			method: http.MethodGet, path: object.path() + "?alt=media",
			header: map[string]string{"Accept-Encoding": "gzip", "Range": cloud.RangeHeader(offset, length)},
		}, func(answer *http.Response) error {
			opened = answer
			return nil
		})
		if err != nil {
			return nil, "", cloud.OrShort(err, statusOf(err))
		}
		return opened.Body, opened.Header.Get("Content-Range"), nil
	})
	if err != nil {
		return nil, s.client.translate(ctx, object, err)
	}
	return part, nil
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	object, err := s.locate(ctx, location)
	if err != nil {
		return storage.Info{}, err
	}
	found, err := s.client.describe(ctx, object)
	if err != nil {
		return storage.Info{}, s.client.translate(ctx, object, err)
	}
	return found.info(), nil
}

// locate returns the object at location. It returns ErrNotFound if no object can have that
// location.
func (s *Store) locate(ctx context.Context, location string) (object, error) {
	parsed, err := s.roots.File(ctx, location)
	if err != nil {
		return object{}, err
	}
	named := object{location: location, bucket: parsed.Authority, name: parsed.Path[1:]}
	if named.name == "" || len(named.name) > nameBytesMax {
		return object{}, fmt.Errorf("%w: %s: the name of an object has 1 to %d bytes", storage.ErrNotFound, location,
			nameBytesMax)
	}
	return named, nil
}

var (
	_ storage.Store  = (*Store)(nil)
	_ storage.Remote = (*Store)(nil)
	_ storage.Lister = (*Store)(nil)
	_ storage.Vender = (*Store)(nil)
)
