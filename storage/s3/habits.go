package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
)

// Forms of a bulk delete. Each server supports one of them.
const (
	deletesSummed uint32 = iota // with a checksum of Amazon's
	deletesMD5                  // with only Content-MD5, which older servers require
	deletesSingle               // one by one
)

// isUnknownForm reports whether a server refused a request because it does not support the form of
// the request.
func isUnknownForm(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// stampMD5 is for servers that refuse Amazon's checksums.
func stampMD5(input *s3.PutObjectInput, body []byte) { input.ContentMD5 = aws.String(encodeMD5(body)) }

func encodeMD5(body []byte) string {
	sum := md5.Sum(body)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// withMD5 sends the MD5 of a body instead of any other checksum. It is for bodies in memory.
func withMD5(stack *middleware.Stack) error {
	const name = "moorage:ContentMD5"
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc(name, func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		request, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errors.New("s3: not a request of HTTP")
		}
		body, err := io.ReadAll(request.GetStream())
		if err == nil {
			err = request.RewindStream()
		}
		if err != nil {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, err
		}
		for header := range request.Header {
			lower := strings.ToLower(header)
			if strings.HasPrefix(lower, "x-amz-checksum-") || strings.HasPrefix(lower, "x-amz-sdk-checksum-") {
				request.Header.Del(header)
			}
		}
		request.Header.Set("Content-Md5", encodeMD5(body))
		return next.HandleFinalize(ctx, in)
	}), "Signing", middleware.Before)
}

// deleteBatch sends one bulk delete in the form that the bucket supports. If that form is not known
// yet, it tries each form. If the bucket supports none, known is false, and the caller deletes
// objects one by one.
func (c *Client) deleteBatch(ctx context.Context, input *s3.DeleteObjectsInput) (
	answer *s3.DeleteObjectsOutput, known bool, err error) {
	habit := &c.bucket(*input.Bucket).deletes
	way := habit.Load()
	for ; way < deletesSingle; way++ {
		add := []func(*middleware.Stack) error{wantDeleteResult}
		if way == deletesMD5 {
			add = append(add, withMD5)
		}
		answer, err = c.sdk.DeleteObjects(ctx, input, s3.WithAPIOptions(add...))
		if err == nil || !isUnknownForm(err) {
			if err == nil {
				habit.Store(way)
			}
			return answer, true, err
		}
	}
	return nil, false, err
}

// features returns the detected features of buckets.
func (c *Client) features(buckets []string) (features []storage.Feature) {
	for _, name := range slices.Sorted(slices.Values(buckets)) {
		known := c.bucket(name)
		add := func(what, value string) {
			features = append(features, storage.Feature{Name: fmt.Sprintf("%s of %s", what, name), Value: value})
		}
		if known.writes.Load() == writesUnconditional {
			add("conditional writes", "no: only random file names keep files from being overwritten")
		}
		if known.refusesSums.Load() {
			add("checksums of writes", "Content-MD5")
		}
		switch known.deletes.Load() {
		case deletesMD5:
			add("bulk deletes", "with Content-MD5")
		case deletesSingle:
			add("bulk deletes", "no: objects are deleted one by one")
		}
	}
	return features
}
