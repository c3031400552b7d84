package gcs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"moorage/storage/cloud"
)

// deleteBatchMax is the maximum number of calls in one request. Source: JSON API, "Batch requests".
const deleteBatchMax = 100

// errUnanswered means that the answer to a batch lacks the result of one call. The server may
// answer when the call is sent again.
var errUnanswered = errors.New("the server did not answer this one")

// Delete removes objects, up to a hundred with one request. If the bucket keeps old versions or
// deleted objects, they stay until the bucket's own rules remove them.
func (s *Store) Delete(ctx context.Context, locations ...string) error {
	objects, failures := cloud.Located(locations, func(location string) (object, error) {
		return s.locate(ctx, location)
	})
	for batch := range slices.Chunk(objects, deleteBatchMax) {
		failures = append(failures, s.client.deleteObjects(ctx, batch)...)
	}
	return errors.Join(failures...)
}

// deleteObjects removes at most deleteBatchMax objects. If the server fails temporarily for some of
// them, deleteObjects sends those again. It returns an error for each object that was not deleted.
func (c *Client) deleteObjects(ctx context.Context, batch []object) []error {
	if len(batch) == 1 {
		return c.deleteOne(ctx, batch[0])
	}
	pause := func(attempt int) error { return c.pause(ctx, attempt) }
	return cloud.Resend(batch, attemptsMax, pause, func(batch []object) (deleted cloud.Deleted[object], err error) {
		statuses, err := c.deleteBatch(ctx, batch)
		if err != nil {
			return deleted, fmt.Errorf("delete %s and %d more: %w", batch[0].location, len(batch)-1, err)
		}
		for i, err := range statuses {
			switch status := statusOf(err); {
			case err == nil, status == http.StatusNotFound:
			case isPassing(status), errors.Is(err, errUnanswered):
				deleted.Passing = append(deleted.Passing, fmt.Errorf("delete %s: %w", batch[i].location, err))
				deleted.Again = append(deleted.Again, batch[i])
			default:
				deleted.Lasting = append(deleted.Lasting, fmt.Errorf("delete %s: %w", batch[i].location, err))
			}
		}
		return deleted, nil
	})
}

// deleteOne removes an object with a separate request.
func (c *Client) deleteOne(ctx context.Context, o object) []error {
	err := c.do(ctx, request{method: http.MethodDelete, path: o.path()}, func(answer *http.Response) error {
		return answer.Body.Close()
	})
	if err != nil && statusOf(err) != http.StatusNotFound {
		return []error{fmt.Errorf("delete %s: %w", o.location, err)}
	}
	return nil
}

// deleteBatch sends the removal of all of batch in one request, and returns the result of each. A
// missing result is a temporary failure.
func (c *Client) deleteBatch(ctx context.Context, batch []object) (answers []error, err error) {
	boundary, err := cloud.NewWriteID(c.random)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	for i, o := range batch {
		fmt.Fprintf(&body, "--%s\r\nContent-Type: application/http\r\nContent-ID: <%d>\r\n\r\n"+
			"DELETE %s HTTP/1.1\r\n\r\n\r\n", boundary, i, o.path())
	}
	fmt.Fprintf(&body, "--%s--\r\n", boundary)
	err = c.do(ctx, request{
		method: http.MethodPost, path: "/batch/storage/v1",
		header: map[string]string{"Content-Type": "multipart/mixed; boundary=" + boundary},
		body:   func() io.Reader { return bytes.NewReader(body.Bytes()) }, bytes: int64(body.Len()),
	}, func(answer *http.Response) error {
		defer answer.Body.Close()
		answers, err = readBatch(answer, len(batch))
		return err
	})
	return answers, err
}

// readBatch reads the answers to count calls, which may come in any order.
func readBatch(answer *http.Response, count int) ([]error, error) {
	answers := make([]error, count)
	for i := range answers {
		answers[i] = errUnanswered
	}
	kind, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		return nil, errors.New("the response is not multipart")
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if err != nil {
		return nil, err // a truncated part would look malformed
	}
	parts := multipart.NewReader(bytes.NewReader(content), parameters["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the answers: %w", err)
		}
		id := strings.TrimSuffix(strings.TrimPrefix(part.Header.Get("Content-ID"), "<response-"), ">")
		number, err := strconv.Atoi(id)
		if err != nil || number < 0 || number >= count {
			return nil, fmt.Errorf("the server answered a call %q, which it was not sent", id)
		}
		if answers[number], err = readPart(part); err != nil {
			return nil, fmt.Errorf("read the answer to call %d: %w", number, err)
		}
	}
}

// readPart reads the answer to one call. The first result is nil if the call succeeded.
func readPart(part io.Reader) (failure, err error) {
	one, err := http.ReadResponse(bufio.NewReader(part), nil)
	if err != nil {
		return nil, err
	}
	defer one.Body.Close()
	if one.StatusCode/100 == 2 {
		return nil, nil
	}
	return newStatusError(one), nil
}
