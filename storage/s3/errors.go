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

// translate converts the error of reading an object to an error of the port. If translate can
// detect a missing bucket, it does not return ErrNotFound, because callers must not conclude that a
// file is gone for good.
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

// orSlow converts the error of an answer that demands fewer requests to storage.ErrSlowDown.
func orSlow(err error) error {
	if status := statusOf(err); status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests ||
		codeOf(err) == codeSlowDown {
		return fmt.Errorf("%w: %w", storage.ErrSlowDown, err)
	}
	return err
}
