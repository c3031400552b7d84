package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"time"

	"moorage/storage"
	"moorage/storage/cloud"
)

// writeIDKey is the key, in an object's metadata, of the id of the call that made the object.
const writeIDKey = "moorage-write-id"

// castagnoli is the polynomial of the server's checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// resource is the server's description of an object. Source: JSON API, "Objects".
type resource struct {
	Name       string            `json:"name"`
	Bytes      int64             `json:"size,string"`
	Updated    time.Time         `json:"updated"`
	Generation int64             `json:"generation,string"`
	Metadata   map[string]string `json:"metadata"`
}

// info returns the storage.Info of an object. It drops fractions of a second, because the header of
// a read has whole seconds.
func (r resource) info() storage.Info {
	return storage.Info{Bytes: r.Bytes, Modified: r.Updated.Truncate(time.Second)}
}

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
	err = s.client.insert(ctx, object, body, id)
	switch {
	case statusOf(err) == http.StatusPreconditionFailed:
		return s.client.settle(ctx, object, body, id)
	case err != nil:
		return fmt.Errorf("create %s: %w", location, err)
	}
	return nil
}

// insert sends body as the content of an object that must not exist. If the object exists, the
// status of the error is http.StatusPreconditionFailed.
func (c *Client) insert(ctx context.Context, o object, body []byte, id string) error {
	head, tail, contentType, err := envelope(o, body, id)
	if err != nil {
		return err
	}
	query := url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {"0"}, "fields": {"name,generation,size"}}
	var made resource
	err = c.doJSON(ctx, request{
		method: http.MethodPost,
		path:   "/upload/storage/v1/b/" + o.bucket + "/o?" + query.Encode(),
		header: map[string]string{"Content-Type": contentType},
		body: func() io.Reader {
			return io.MultiReader(bytes.NewReader(head), bytes.NewReader(body), bytes.NewReader(tail))
		},
		bytes: int64(len(head) + len(body) + len(tail)),
	}, &made)
	if err == nil && (made.Name != o.name || made.Generation == 0 || made.Bytes != int64(len(body))) {
		err = fmt.Errorf("the server reports %d bytes as %q, of %d", made.Bytes, made.Name, len(body))
	}
	return err
}

// envelope returns the text before and the text after the body of a write, and the content type of
// the whole. The write's id is the boundary between the parts: it is random, so body cannot contain
// it.
func envelope(o object, body []byte, id string) (head, tail []byte, contentType string, err error) {
	var sum [crc32.Size]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	metadata, err := json.Marshal(map[string]any{
		"name": o.name, "crc32c": base64.StdEncoding.EncodeToString(sum[:]),
		"contentType": "application/octet-stream", "metadata": map[string]string{writeIDKey: id},
	})
	if err != nil {
		return nil, nil, "", err
	}
	head = fmt.Appendf(nil, "--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n"+
		"--%s\r\nContent-Type: application/octet-stream\r\n\r\n", id, metadata, id)
	return head, fmt.Appendf(nil, "\r\n--%s--\r\n", id), "multipart/related; boundary=" + id, nil
}

// settle finds out which call wrote the existing object.
func (c *Client) settle(ctx context.Context, o object, body []byte, id string) error {
	found, err := c.describe(ctx, o)
	if err != nil {
		// An earlier attempt may have written the object, which was then deleted, or the object may
		// exist.
		return fmt.Errorf("create %s: the name is taken, and reading its properties failed: %w", o.location, err)
	}
	return cloud.Settle(o.location, cloud.Written{ID: id, Bytes: int64(len(body))},
		cloud.Written{ID: found.Metadata[writeIDKey], Bytes: found.Bytes})
}

// describe returns the server's description of an object.
func (c *Client) describe(ctx context.Context, o object) (found resource, err error) {
	err = c.doJSON(ctx, request{
		method: http.MethodGet,
		path:   o.path() + "?" + url.Values{"fields": {"name,size,updated,generation,metadata"}}.Encode(),
	}, &found)
	if err == nil && found.Name != o.name {
		err = fmt.Errorf("the server answered for %q", found.Name)
	}
	return found, err
}

// path returns the path of an object in the JSON API.
func (o object) path() string { return "/storage/v1/b/" + o.bucket + "/o/" + url.PathEscape(o.name) }
