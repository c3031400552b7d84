package gcs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"moorage/storage"
	"moorage/storage/cloud"
)

// listMax is the maximum number of objects in one listing of the server.
const listMax = 1000

// listed is a page of a listing. Source: JSON API, "Objects: list".
type listed struct {
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
	listing := cloud.Listing{
		Folder: folder, After: after, Prefix: cloud.Below(within.name),
		Bucket: storage.Location{Scheme: storage.SchemeGCS, Authority: within.bucket},
	}
	found, header, err := s.client.list(ctx, within.bucket, listing.Prefix, after, min(limit, listMax))
	if err != nil {
		return storage.Page{}, fmt.Errorf("list %s: %w", folder, err)
	}
	now, _ := http.ParseTime(header.Get("Date"))
	page, err := listing.Page(now, found.Next != "", found.Next)
	if err != nil {
		return storage.Page{}, err
	}
	for _, each := range found.Items {
		listing.Add(&page, each.Name, each.info())
	}
	return page, nil
}

// list requests a page of the objects whose names begin with prefix.
func (c *Client) list(ctx context.Context, bucket, prefix, after string, limit int) (
	found listed, header http.Header, err error) {
	query := url.Values{
		"prefix": {prefix}, "maxResults": {strconv.Itoa(limit)},
		"fields": {"items(name,size,updated,generation),nextPageToken"},
	}
	if after != "" {
		query.Set("pageToken", after)
	}
	err = c.do(ctx, request{method: http.MethodGet, path: "/storage/v1/b/" + bucket + "/o?" + query.Encode()},
		func(answer *http.Response) error {
			found, header = listed{}, answer.Header
			return readJSON(answer, &found)
		})
	return found, header, err
}
