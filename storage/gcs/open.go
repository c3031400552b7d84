package gcs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"moorage/storage"
	"moorage/storage/cloud"
)

// open requests an object. The body can be read until ctx ends. It must be closed.
func (c *Client) open(ctx context.Context, o object) (io.ReadCloser, storage.Info, error) {
	answer, err := c.get(ctx, o, "", 0)
	if err != nil {
		return nil, storage.Info{}, err
	}
	generation := answer.Header.Get("X-Goog-Generation")
	modified, err := http.ParseTime(answer.Header.Get("Last-Modified"))
	if answer.ContentLength < 0 || generation == "" || err != nil {
		err := errors.New("the response lacks the length, the generation or the time of the object")
		return nil, storage.Info{}, errors.Join(err, answer.Body.Close())
	}
	info := storage.Info{Bytes: answer.ContentLength, Modified: modified.In(time.UTC)}
	sum, want := checksum(answer.Header)
	return cloud.Resume(answer.Body, cloud.Content{
		Name: o.location, Bytes: info.Bytes, Sum: sum, Want: want,
		Resume: func(offset int64) (io.ReadCloser, error) {
			answer, err := c.get(ctx, o, generation, offset)
			if err != nil {
				return nil, err
			}
			return answer.Body, nil
		},
	}), info, nil
}

// get requests the bytes of an object from offset on. If generation is not empty, the object must
// still have that generation.
func (c *Client) get(ctx context.Context, o object, generation string, offset int64) (*http.Response, error) {
	query := url.Values{"alt": {"media"}}
	if generation != "" {
		query.Set("generation", generation)
	}
	asked := request{
		method: http.MethodGet, path: o.path() + "?" + query.Encode(),
		// With this header neither the server nor Go's HTTP client decompresses stored content.
		header: map[string]string{"Accept-Encoding": "gzip"},
	}
	if offset > 0 {
		asked.header["Range"] = fmt.Sprintf("bytes=%d-", offset)
	}
	var opened *http.Response
	err := c.do(ctx, asked, func(answer *http.Response) error {
		got := answer.Header.Get("Content-Range")
		if offset > 0 && !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
			return errors.Join(fmt.Errorf("the server returned the range %q", got), answer.Body.Close())
		}
		opened = answer
		return nil
	})
	return opened, err
}

// checksum returns a CRC32C hash, and the server's checksum. At the end of the object, the hash
// must equal that checksum. If the server has no checksum, it returns nil.
func checksum(header http.Header) (hash.Hash, []byte) {
	for part := range strings.SplitSeq(strings.Join(header.Values("X-Goog-Hash"), ","), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
			if want, err := base64.StdEncoding.DecodeString(text); err == nil && len(want) == crc32.Size {
				return crc32.New(castagnoli), want
			}
		}
	}
	return nil, nil
}
