package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
	"moorage/storage/cloud"
)

// get requests an object. The body can be read until ctx ends. It must be closed.
func (c *Client) get(ctx context.Context, o object) (io.ReadCloser, storage.Info, error) {
	answer, err := c.open(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: &o.key})
	if err != nil {
		return nil, storage.Info{}, err
	}
	if answer.ContentLength == nil {
		return nil, storage.Info{}, errors.Join(errors.New("the response has no length of the object"),
			answer.Body.Close())
	}
	sum, want := checksum(answer)
	info := storage.Info{Bytes: *answer.ContentLength, Modified: aws.ToTime(answer.LastModified)}
	return cloud.Resume(answer.Body, cloud.Content{
		Name: o.location, Bytes: info.Bytes, Sum: sum, Want: want,
		Resume: func(offset int64) (io.ReadCloser, error) { return c.openAt(ctx, o, answer.ETag, offset) },
	}), info, nil
}

// openAt requests the bytes of an object from offset on, on condition that the object still has the
// version etag.
func (c *Client) openAt(ctx context.Context, o object, etag *string, offset int64) (io.ReadCloser, error) {
	answer, err := c.open(ctx, &s3.GetObjectInput{
		Bucket: &o.bucket, Key: &o.key, IfMatch: etag, Range: aws.String(fmt.Sprintf("bytes=%d-", offset)),
	})
	if err != nil {
		return nil, err
	}
	if got := aws.ToString(answer.ContentRange); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
		return nil, errors.Join(fmt.Errorf("the server returned the range %q", got), answer.Body.Close())
	}
	return answer.Body, nil
}

// open sends one GET that requests the server's checksum.
func (c *Client) open(ctx context.Context, input *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	return c.sdk.GetObject(ctx, input, s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Amz-Checksum-Mode", "ENABLED")))
}
