package gcs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"moorage/storage"
)

// listMax is how many objects the server lists in one answer.
const listMax = 1000

// listing is a page of a listing. Source: JSON API, "Objects: list".
type listing struct {
	Items []resource `json:"items"`
	Next  string     `json:"nextPageToken"`
}

// List implements storage.Lister with one request. It leaves out objects whose names end with a
// slash, which represent folders.
func (s *Store) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	within, err := s.locate(ctx, folder)
	if err != nil {
		return storage.Page{}, err
	}
	prefix, bucket := under(within.name), storage.SchemeGCS+"://"+within.bucket+"/"
	found, header, err := s.client.list(ctx, within.bucket, prefix, after, min(limit, listMax))
	if err != nil {
		return storage.Page{}, fmt.Errorf("list %s: %w", folder, err)
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return storage.Page{}, fmt.Errorf("list %s: the server does not say what time it is", folder)
	}
	page := storage.Page{Now: now, Next: found.Next}
	for _, each := range found.Items {
		location := bucket + each.Name
		parsed, err := storage.ParseFile(location)
		if err != nil || parsed.String() != location || !strings.HasPrefix(each.Name, prefix) {
			continue
		}
		page.Files = append(page.Files, storage.Listed{Location: location, Info: each.info()})
	}
	if page.Next != "" && page.Next == after {
		return storage.Page{}, fmt.Errorf("list %s: the server has more, and does not say how to go on", folder)
	}
	return page, nil
}

// list requests a page of the objects whose names begin with prefix.
func (c *Client) list(ctx context.Context, bucket, prefix, after string, limit int) (
	found listing, header http.Header, err error) {
	query := url.Values{
		"prefix": {prefix}, "maxResults": {strconv.Itoa(limit)},
		"fields": {"items(name,size,updated,generation),nextPageToken"},
	}
	if after != "" {
		query.Set("pageToken", after)
	}
	err = c.do(ctx, request{method: http.MethodGet, path: "/storage/v1/b/" + bucket + "/o?" + query.Encode()},
		func(answer *http.Response) error {
			found, header = listing{}, answer.Header
			return readJSON(answer, &found)
		})
	return found, header, err
}
