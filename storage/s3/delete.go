package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyxml "github.com/aws/smithy-go/encoding/xml"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/internal/worker"
	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// deleteBatchMax is the maximum number of objects that S3 deletes in one request.
	deleteBatchMax = 1000
	// codeNoSuchKey is the error code that some servers return when a missing key is deleted.
	codeNoSuchKey = "NoSuchKey"
)

// Delete removes objects, up to a thousand with one request. If the bucket keeps old versions, they
// stay until the bucket's own rules remove them.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	objects, failures := cloud.Located(locations, func(location string) (object, error) {
		return s.locate(ctx, location)
	})
	batches := make(map[string][]types.ObjectIdentifier) // by bucket
	for _, object := range objects {
		if fitsXML(object.key) {
			batches[object.bucket] = append(batches[object.bucket], types.ObjectIdentifier{Key: &object.key})
		} else {
			failures = append(failures, s.client.deleteOne(ctx, object))
		}
	}
	for name, keys := range batches {
		for batch := range slices.Chunk(keys, deleteBatchMax) {
			failures = append(failures, s.client.deleteObjects(ctx, name, batch)...)
		}
	}
	return errors.Join(failures...)
}

// fitsXML reports whether XML can express key. XML cannot express U+FFFE and U+FFFF; the encoder
// would replace them, and the request would name a different object. storage.Parse refuses all
// other characters that XML cannot express.
func fitsXML(key string) bool { return !strings.ContainsAny(key, "\uFFFE\uFFFF") }

// deleteOne removes an object with a separate request.
func (c *Client) deleteOne(ctx context.Context, o object) error {
	_, err := c.sdk.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.bucket, Key: &o.key})
	if err != nil && statusOf(err) != http.StatusNotFound {
		return fmt.Errorf("delete %s: %w", o.location, orSlow(err))
	}
	return nil
}

// deleteSingly removes objects of a bucket one by one, for a server without bulk deletes.
func (c *Client) deleteSingly(ctx context.Context, bucket string, batch []types.ObjectIdentifier) (failures []error) {
	for _, each := range batch {
		key := aws.ToString(each.Key)
		err := c.deleteOne(ctx, object{location: "s3://" + bucket + "/" + key, bucket: bucket, key: key})
		if err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			return failures
		}
	}
	if len(failures) == 0 {
		c.bucket(bucket).deletes.Store(deletesSingle)
	}
	return failures
}

// deleteObjects removes at most deleteBatchMax objects of a bucket. If the server fails temporarily
// for some of them, deleteObjects sends those again. It returns an error for each object that was
// not deleted. It also returns an error for each object in the answer that was not in the request.
func (c *Client) deleteObjects(ctx context.Context, bucket string, batch []types.ObjectIdentifier) []error {
	pause := func(attempt int) error { return c.pause(ctx, attempt) }
	return cloud.Resend(batch, attemptsMax, pause, func(batch []types.ObjectIdentifier) (
		deleted cloud.Deleted[types.ObjectIdentifier], err error,
	) {
		answer, known, err := c.deleteBatch(ctx, &s3.DeleteObjectsInput{
			Bucket: &bucket,
			Delete: &types.Delete{Objects: batch, Quiet: aws.Bool(true)},
		})
		if !known {
			deleted.Lasting = c.deleteSingly(ctx, bucket, batch)
			return deleted, nil
		}
		if err != nil {
			return deleted, fmt.Errorf("delete %d objects of %s: %w", len(batch), bucket, orSlow(err))
		}
		asked := make(map[string]bool, len(batch))
		for _, o := range batch {
			asked[aws.ToString(o.Key)] = true
		}
		for _, failed := range answer.Errors {
			err := fmt.Errorf("delete s3://%s/%s: %s: %s", bucket, aws.ToString(failed.Key), aws.ToString(failed.Code),
				aws.ToString(failed.Message))
			switch {
			case aws.ToString(failed.Code) == codeNoSuchKey:
			case isPassing(failed) && asked[aws.ToString(failed.Key)]:
				if aws.ToString(failed.Code) == codeSlowDown {
					err = fmt.Errorf("%w: %w", storage.ErrSlowDown, err)
				}
				deleted.Passing = append(deleted.Passing, err)
				deleted.Again = append(deleted.Again, types.ObjectIdentifier{Key: failed.Key})
			default:
				deleted.Lasting = append(deleted.Lasting, err)
			}
		}
		return deleted, nil
	})
}

// identifiers returns the objects with the keys, for a bulk delete.
func identifiers(keys []string) []types.ObjectIdentifier {
	objects := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		objects[i].Key = &keys[i]
	}
	return objects
}

// wantDeleteResult turns an answer with an unexpected document into an error. The SDK would find no
// failures in such a document, for example in a page of a proxy. An answer without a document is
// not an error: the server may simply have nothing to report.
func wantDeleteResult(stack *middleware.Stack) error {
	const name = "moorage:DeleteResult"
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(name, func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (out middleware.DeserializeOutput, metadata middleware.Metadata, err error) {
		out, metadata, err = next.HandleDeserialize(ctx, in)
		response, ok := out.RawResponse.(*smithyhttp.Response)
		if err != nil || !ok || response.StatusCode != http.StatusOK {
			return out, metadata, err
		}
		var read bytes.Buffer
		root, err := smithyxml.FetchRootElement(xml.NewDecoder(io.TeeReader(response.Body, &read)))
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&read, response.Body), response.Body}
		switch {
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(read.Bytes())) == 0:
			err = nil
		case errors.Is(err, io.EOF):
			err = errors.New("the server answered with something that is not an XML document")
		case err == nil && root.Name.Local != "DeleteResult" && root.Name.Local != "Error": // the SDK handles Error
			err = fmt.Errorf("the server answered with a document of the kind %q", root.Name.Local)
		}
		return out, metadata, err
	}), middleware.After)
}

// isPassing reports whether an object that could not be deleted is worth a retry.
func isPassing(failed types.Error) bool {
	switch aws.ToString(failed.Code) {
	case "InternalError", "SlowDown", "ServiceUnavailable", "OperationAborted", "RequestTimeout":
		return true
	}
	return false
}

// pause waits before the next attempt, or until ctx ends.
func (c *Client) pause(ctx context.Context, attempt int) error {
	delay, err := c.backoff.BackoffDelay(attempt, nil)
	if err != nil {
		return err
	}
	if !worker.Sleep(ctx, delay) {
		return context.Cause(ctx)
	}
	return nil
}
