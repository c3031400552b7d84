package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// writeIDKey is the key, in an object's metadata, of the id of the call that made the object.
	writeIDKey = "moorage-write-id"
	// anyVersion is the If-None-Match header of a write that must not replace an object.
	anyVersion = "*"
)

// Create writes a new object, as described in the package comment.
func (s *Store) Create(ctx context.Context, location string, body []byte) error {
	object, err := s.locate(ctx, location)
	if err != nil {
		return err
	}
	id, err := cloud.NewWriteID(s.client.random)
	if err != nil {
		return fmt.Errorf("create %s: %w", location, err)
	}
	if s.writesConditionally(ctx, object.bucket) {
		err := s.client.create(ctx, object, body, id, true)
		if statusOf(err) != http.StatusNotImplemented {
			return err
		}
		s.client.foundUnconditional(ctx, object.bucket)
	}
	if _, err := s.client.head(ctx, object); statusOf(err) != http.StatusNotFound {
		return createError(object, err)
	}
	return s.client.create(ctx, object, body, id, false)
}

// create makes an object. If conditional is false, the caller has checked that the object does not
// exist.
func (c *Client) create(ctx context.Context, o object, body []byte, id string, conditional bool) error {
	etag, err := c.put(ctx, o, body, id, conditional)
	switch {
	case err == nil && etag == "":
		return c.confirm(ctx, o, id)
	case err == nil:
		return nil
	case statusOf(err) == http.StatusPreconditionFailed:
		return c.settle(ctx, o, body, id)
	}
	return fmt.Errorf("create %s: %w", o.location, orSlow(err))
}

// createError returns the error of a Create for which a check, with the result err, did not show
// that the object is missing.
func createError(o object, err error) error {
	if err != nil {
		return fmt.Errorf("create %s: check whether it exists: %w", o.location, orSlow(err))
	}
	return fmt.Errorf("%w: %s", storage.ErrExists, o.location)
}

// put sends body as the content of an object, and returns the object's new version. The version is
// empty if the server returned none.
func (c *Client) put(ctx context.Context, o object, body []byte, id string, conditional bool) (etag string, err error) {
	input := newPut(o, body, id)
	c.bucket(o.bucket).stamp()(input, body)
	if conditional {
		input.IfNoneMatch = aws.String(anyVersion)
	}
	return c.send(ctx, input)
}

// newPut returns a write of body without a checksum, which replaces an existing object.
func newPut(o object, body []byte, id string) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket:   &o.bucket,
		Key:      &o.key,
		Body:     bytes.NewReader(body),
		Metadata: map[string]string{writeIDKey: id},
	}
}

// send sends a write, and returns the results of put.
func (c *Client) send(ctx context.Context, input *s3.PutObjectInput) (etag string, err error) {
	answer, err := c.sdk.PutObject(ctx, input)
	if err != nil {
		return "", err
	}
	return aws.ToString(answer.ETag), nil
}

// confirm checks whether an object exists after its write was answered without a version. Every S3
// server returns a version. A different server at the address, such as a proxy that answers every
// request with a page, does not.
func (c *Client) confirm(ctx context.Context, o object, id string) error {
	found, err := c.head(ctx, o)
	switch {
	case err != nil:
		return fmt.Errorf("create %s: the response had no ETag, and checking the object failed: %w",
			o.location, err)
	case found.Metadata[writeIDKey] != id:
		return fmt.Errorf("create %s: the response had no ETag, and the object is not the one that was written",
			o.location)
	}
	return nil
}

// settle finds out which call wrote the existing object.
func (c *Client) settle(ctx context.Context, o object, body []byte, id string) error {
	found, err := c.head(ctx, o)
	if err != nil {
		// An earlier attempt may have written the object, which was then deleted, or the object may
		// exist.
		return fmt.Errorf("create %s: the name is taken, and reading its properties failed: %w", o.location, err)
	}
	return cloud.Settle(o.location, cloud.Written{ID: id, Bytes: int64(len(body))},
		cloud.Written{ID: found.Metadata[writeIDKey], Bytes: aws.ToInt64(found.ContentLength)})
}
