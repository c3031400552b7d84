package management

import (
	"net/http"
	"strconv"

	"moorage"
	"moorage/catalog/browse"
	"moorage/internal/web"
	"moorage/management/client"
)

// listManifests answers with the manifests of a snapshot, and the files of one of them.
func (s *server) listManifests(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	ident, err := tableOfQuery(q)
	if err != nil {
		return err
	}
	var asked browse.ManifestsRequest
	if asked.Snapshot, err = wholeNumber(q, "snapshot"); err != nil {
		return err
	}
	number, err := wholeNumber(q, "manifest")
	if err != nil {
		return err
	}
	if number != nil {
		at := int(*number)
		asked.Manifest = &at
	}
	list, err := s.browse(r).Manifests(r.Context(), ident, asked)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Manifests{
		SnapshotID: list.Snapshot, Manifests: each(list.Manifests, manifestOf), More: list.More,
		Files: each(list.Files, manifestFileOf), FilesMore: list.FilesMore,
	})
}

// wholeNumber returns the number in a parameter, or nil if it is missing.
func wholeNumber(q web.Query, name string) (*int64, error) {
	text, given, err := q.Text(name)
	if err != nil || !given {
		return nil, err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid %s %.20q: it is not a number", name, text)
	}
	return &number, nil
}

func manifestOf(m browse.Manifest) client.Manifest {
	content := client.ContentData
	if m.Deletes {
		content = client.ContentDeletes
	}
	return client.Manifest{
		Path: m.Path, Content: content, Bytes: m.Bytes, Added: m.Added, Existing: m.Existing, Removed: m.Removed,
	}
}

func manifestFileOf(f browse.ManifestFile) client.ManifestFile {
	return client.ManifestFile{
		Path: f.Path, Content: f.Content, Status: f.Status, Format: f.Format, Rows: f.Rows, Bytes: f.Bytes,
		Partition: f.Partition,
		Bounds:    each(f.Bounds, func(b browse.ColumnBounds) client.ColumnBounds { return client.ColumnBounds(b) }),
	}
}
