package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"moorage/storage"
	"moorage/storage/cloud"
)

// messageMax is the maximum number of characters of the server's message in an error.
const messageMax = 300

// statusError is an answer other than a success.
type statusError struct {
	status  int
	message string // the server's
}

// Error returns the status and the server's message.
func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// Is reports whether the server demands fewer requests, if target is storage.ErrSlowDown. Source:
// JSON API, "HTTP status and error codes".
func (e *statusError) Is(target error) bool {
	return target == storage.ErrSlowDown &&
		(e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable)
}

// newStatusError reads an error of the server, in either form that the API uses.
func newStatusError(answer *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(answer.Body, errorBytesMax))
	if err != nil {
		content = nil // the status is enough
	}
	var document struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	message := document.Description
	if json.Unmarshal(content, &document) == nil {
		message = document.Description
		if json.Unmarshal(document.Error, &inner) == nil {
			message = inner.Message
		}
	}
	return &statusError{answer.StatusCode, printable(message)}
}

// printable returns the beginning of a message without line breaks and other control characters.
func printable(message string) string {
	message = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(message, ""))
	if characters := []rune(message); len(characters) > messageMax {
		return string(characters[:messageMax]) + "…"
	}
	return message
}

// statusOf returns the status of the server's answer, or 0 if there was no answer.
func statusOf(err error) int {
	var status *statusError
	if errors.As(err, &status) {
		return status.status
	}
	return 0
}

// mayPass reports whether a failed request is worth another try.
func mayPass(err error) bool {
	if status := statusOf(err); status != 0 {
		return isPassing(status)
	}
	var network *url.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, cloud.ErrStalled) ||
		errors.Is(err, storage.ErrUnavailable)
}

// isPassing reports whether a status means a temporary failure.
func isPassing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// translate converts an error from reading an object to an error of package storage. A missing
// bucket is not ErrNotFound, because callers must not conclude that a file is gone for good. The
// server's answer is the same in both cases, so translate checks the bucket.
func (c *Client) translate(ctx context.Context, o object, err error) error {
	if statusOf(err) != http.StatusNotFound {
		return fmt.Errorf("%s: %w", o.location, err)
	}
	if bucketErr := c.lookForBucket(ctx, o.bucket, o.name); bucketErr != nil {
		if errors.Is(bucketErr, storage.ErrNotFound) {
			return fmt.Errorf("%s: there is no bucket called %s", o.location, o.bucket)
		}
		return fmt.Errorf("%s: %w, and finding its bucket failed: %w", o.location, err, bucketErr)
	}
	return fmt.Errorf("%w: %s: %w", storage.ErrNotFound, o.location, err)
}
