package s3

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"moorage/storage"
	"moorage/storage/cloud"
)

// keyBytesMax is the maximum length of a key in S3.
const keyBytesMax = 1024

// Store is a storage.Store over the objects of one server. It is safe for concurrent use, even by
// several processes.
type Store struct {
	client *Client
	roots  cloud.Roots
}

// object names an object.
type object struct {
	location    string // in the caller's spelling
	bucket, key string
}

// Within returns a store of the objects at and below roots, which are locations. It sends nothing.
// It returns ErrLocation if a root is not an S3 location.
func (c *Client) Within(roots []string) (*Store, error) {
	parsed, err := cloud.ParseRoots(storage.SchemeS3, "S3", roots)
	if err != nil {
		return nil, err
	}
	return &Store{client: c, roots: parsed}, nil
}

// ClientConfig returns how an engine reaches the server: endpoint, region, path style.
func (s *Store) ClientConfig() map[string]string { return s.client.clientConfig }

// Features returns the detected features of the server.
func (s *Store) Features() []storage.Feature {
	_, buckets := s.roots.Shortest()
	return append(s.client.features(buckets), s.client.signFeatures()...)
}

// Open returns the content of an object. A caller that reads to the end without an error has the
// complete content, which matches the server's checksum. Reading fails once ctx has ended. If the
// connection breaks during the read, the reader reconnects, a few times at most.
func (s *Store) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	object, err := s.locate(ctx, location)
	if err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := s.client.get(ctx, object)
	if err != nil {
		return nil, storage.Info{}, translate(object, err)
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
		answer, err := s.client.open(ctx, &s3.GetObjectInput{
			Bucket: &object.bucket, Key: &object.key, Range: aws.String(cloud.RangeHeader(offset, length)),
		})
		if err != nil {
			return nil, "", cloud.OrShort(err, statusOf(err))
		}
		return answer.Body, aws.ToString(answer.ContentRange), nil
	})
	if err != nil {
		return nil, translate(object, err)
	}
	return part, nil
}

// Stat describes an object.
func (s *Store) Stat(ctx context.Context, location string) (storage.Info, error) {
	object, err := s.locate(ctx, location)
	if err != nil {
		return storage.Info{}, err
	}
	found, err := s.client.head(ctx, object)
	if err != nil {
		return storage.Info{}, translate(object, err)
	}
	return storage.Info{Bytes: aws.ToInt64(found.ContentLength), Modified: aws.ToTime(found.LastModified)}, nil
}

// head requests the metadata of an object.
func (c *Client) head(ctx context.Context, o object) (*s3.HeadObjectOutput, error) {
	return c.sdk.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &o.bucket, Key: &o.key})
}

// locate returns the object at location. It returns ErrNotFound if no object can have that
// location.
func (s *Store) locate(ctx context.Context, location string) (object, error) {
	parsed, err := s.roots.File(ctx, location)
	if err != nil {
		return object{}, err
	}
	named := object{location: location, bucket: parsed.Authority, key: parsed.Path[1:]}
	if named.key == "" || len(named.key) > keyBytesMax {
		return object{}, fmt.Errorf("%w: %s: a key has 1 to %d bytes", storage.ErrNotFound, location, keyBytesMax)
	}
	return named, nil
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Remote   = (*Store)(nil)
	_ storage.Vender   = (*Store)(nil)
	_ storage.Signer   = (*Store)(nil)
	_ storage.Featured = (*Store)(nil)
)
