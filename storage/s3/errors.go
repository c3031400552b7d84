package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"moorage/storage"
)

// codeNoSuchBucket is S3's code for a missing bucket, in answers that have a body.
const codeNoSuchBucket = "NoSuchBucket"

// codeSlowDown is S3's code for too many requests.
const codeSlowDown = "SlowDown"

// statusOf returns the status of the server's answer, or 0 if there was no answer.
func statusOf(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// codeOf returns the server's error code, or "" if there is none.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// translate converts an error from reading an object to an error of package storage. If it can tell
// that the bucket is missing, it does not return ErrNotFound: callers must not conclude that a file
// was deleted.
func translate(o object, err error) error {
	if none, ok := errors.AsType[noCredentials](err); ok {
		return fmt.Errorf("%s: %w", o.location, none)
	}
	err = orSlow(err)
	if statusOf(err) == http.StatusNotFound && codeOf(err) != codeNoSuchBucket {
		return fmt.Errorf("%w: %s: %w", storage.ErrNotFound, o.location, err)
	}
	return fmt.Errorf("%s: %w", o.location, err)
}

// orSlow converts err to storage.ErrSlowDown if the server demands fewer requests.
func orSlow(err error) error {
	if status := statusOf(err); status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests ||
		codeOf(err) == codeSlowDown {
		return fmt.Errorf("%w: %w", storage.ErrSlowDown, err)
	}
	return err
}
