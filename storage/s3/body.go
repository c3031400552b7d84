package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
)

// resumesMax is how often one body goes on behind a cut connection.
const resumesMax = 4

// body is the content of an object. It is for one goroutine.
type body struct {
	object object
	info   storage.Info
	// resume asks for the bytes from offset on, of the same version of the object.
	resume func(offset int64) (io.ReadCloser, error)

	stream  io.ReadCloser // of the latest answer
	offset  int64
	resumes int
	sum     hash.Hash // nil: the server has no checksum
	want    []byte
	end     error // what Read answers from now on, if it is set
}

// get asks for an object. The answer ends with ctx, and not before the body is closed.
func (c *Client) get(ctx context.Context, o object) (*body, error) {
	answer, err := c.open(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: &o.key})
	if err != nil {
		return nil, err
	}
	if answer.ContentLength == nil {
		return nil, errors.Join(errors.New("the server does not say how long the object is"), answer.Body.Close())
	}
	opened := &body{
		object: o,
		info:   storage.Info{Bytes: *answer.ContentLength, Modified: aws.ToTime(answer.LastModified)},
		stream: answer.Body,
		resume: func(offset int64) (io.ReadCloser, error) { return c.openAt(ctx, o, answer.ETag, offset) },
	}
	opened.sum, opened.want = checksum(answer)
	return opened, nil
}

// openAt asks for the bytes from offset on, of an object that still has the version etag.
func (c *Client) openAt(ctx context.Context, o object, etag *string, offset int64) (io.ReadCloser, error) {
	answer, err := c.open(ctx, &s3.GetObjectInput{
		Bucket: &o.bucket, Key: &o.key, IfMatch: etag, Range: aws.String(fmt.Sprintf("bytes=%d-", offset)),
	})
	if err != nil {
		return nil, err
	}
	if got := aws.ToString(answer.ContentRange); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
		return nil, errors.Join(fmt.Errorf("the server answered the range %q", got), answer.Body.Close())
	}
	return answer.Body, nil
}

// open sends one GET that asks the server for its checksum.
func (c *Client) open(ctx context.Context, input *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	return c.sdk.GetObject(ctx, input, s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Amz-Checksum-Mode", "ENABLED")))
}

// Read reads on, behind a cut connection too. At the end it answers io.EOF only if all is there
// and has the checksum that the server keeps.
func (b *body) Read(into []byte) (int, error) {
	for b.end == nil {
		n, err := b.stream.Read(into)
		b.offset += int64(n)
		if b.sum != nil {
			b.sum.Write(into[:n])
		}
		switch {
		case err == nil:
			return n, nil
		case b.offset >= b.info.Bytes: // whatever err is, all is there
			b.end = b.verify()
		default:
			b.end = b.goOn(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.end
}

// verify returns io.EOF if the bytes that were read are those that the server has.
func (b *body) verify() error {
	switch {
	case b.offset > b.info.Bytes:
		return fmt.Errorf("%s has more than its %d bytes", b.object.location, b.info.Bytes)
	case b.sum != nil && !bytes.Equal(b.sum.Sum(nil), b.want):
		return fmt.Errorf("%s: its content and its checksum differ", b.object.location)
	}
	return io.EOF
}

// goOn replaces a stream that ended early because of cause.
func (b *body) goOn(cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	if b.resumes == resumesMax {
		return fmt.Errorf("%s: cut %d times, the last at %d of %d bytes: %w", b.object.location, b.resumes+1, b.offset,
			b.info.Bytes, cause)
	}
	b.resumes++
	if err := b.stream.Close(); err != nil {
		cause = errors.Join(cause, err)
	}
	next, err := b.resume(b.offset)
	if err != nil {
		return fmt.Errorf("%s: cut at %d of %d bytes: %w, and the rest cannot be read: %w", b.object.location,
			b.offset, b.info.Bytes, cause, err)
	}
	b.stream = next
	return nil
}

// Close gives the connection back.
func (b *body) Close() error { return b.stream.Close() }
