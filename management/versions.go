package management

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/management/client"
)

// Versions has the methods of catalog.Catalog on the versions of tables and views, for one caller.
type Versions interface {
	LoadVersion(ctx context.Context, ident moorage.Identifier, name catalog.VersionName) (catalog.TableVersion, error)
	Diff(ctx context.Context, ident moorage.Identifier, from, to catalog.VersionName) (catalog.Difference, error)
	Rollback(ctx context.Context, ident moorage.Identifier, asked catalog.RollbackRequest) (catalog.RolledBack, error)
	LoadViewVersion(ctx context.Context, ident moorage.Identifier, name catalog.VersionName) (
		catalog.ViewVersion, error)
	DiffViews(ctx context.Context, ident moorage.Identifier, from, to catalog.VersionName) (
		catalog.ViewDifference, error)
	RollbackView(ctx context.Context, ident moorage.Identifier, asked catalog.RollbackRequest) (
		catalog.RolledBackView, error)
	Rows(ctx context.Context, ident moorage.Identifier, asked catalog.RowsRequest) (catalog.FirstRows, error)
}

// versionOperations returns the operations on the versions of tables and views.
func (s *server) versionOperations() []operation {
	return []operation{
		{"loadMetadata", http.MethodGet, "/metadata", s.loadMetadata},
		{"diffVersions", http.MethodGet, "/diff", s.diffVersions},
		{"readRows", http.MethodGet, "/rows", s.readRows},
		{"rollbackTable", http.MethodPost, "/rollback", s.rollbackTable},
	}
}

// tableOfQuery returns the table named in the query parameters.
func tableOfQuery(q web.Query) (ident moorage.Identifier, err error) {
	return identOfQuery(q, client.KindTable)
}

// versionedOf returns the table or view named in the query parameters.
func versionedOf(q web.Query) (ident moorage.Identifier, isView bool, err error) {
	_, isTable, err := q.Text(client.KindTable)
	if err != nil {
		return ident, false, err
	}
	if _, isView, err = q.Text(client.KindView); err != nil {
		return ident, false, err
	}
	kind := client.KindTable
	switch {
	case isTable && isView:
		return ident, true, moorage.Errorf(moorage.KindBadRequest, "Name a table or a view, not both")
	case isView:
		kind = client.KindView
	}
	ident, err = identOfQuery(q, kind)
	return ident, isView, err
}

// identOfQuery returns the identifier in the query parameters. kind is the parameter that has the
// last part: table or view.
func identOfQuery(q web.Query, kind string) (ident moorage.Identifier, err error) {
	var texts [3]string
	for i, name := range []string{"warehouse", "namespace", kind} {
		var given bool
		texts[i], given, err = q.Text(name)
		switch {
		case err != nil:
			return ident, err
		case !given:
			return ident, moorage.Errorf(moorage.KindBadRequest, "Parameter %s is missing", name)
		}
	}
	ident = moorage.Identifier{
		Warehouse: texts[0], Namespace: strings.Split(texts[1], moorage.LevelSeparator), Name: texts[2],
	}
	if err := moorage.ValidateWarehouse(ident.Warehouse); err != nil {
		return ident, err
	}
	return ident, ident.Validate()
}

// versionIn returns the version in a query parameter, or fallback if there is none.
func (s *server) versionIn(q web.Query, parameter, fallback string) (catalog.VersionName, error) {
	text, given, err := q.Text(parameter)
	if err != nil {
		return catalog.VersionName{}, err
	}
	if !given {
		text = fallback
	}
	return catalog.ParseVersion(text, s.config.Now())
}

// loadMetadata answers with the content of the metadata file of a version.
func (s *server) loadMetadata(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	ident, isView, err := versionedOf(q)
	if err != nil {
		return err
	}
	name, err := s.versionIn(q, "version", "now")
	if err != nil {
		return err
	}
	versions := s.config.Versions(web.CallerOf(r), nil, nil)
	if isView {
		version, err := versions.LoadViewVersion(r.Context(), ident, name)
		if err != nil {
			return err
		}
		return s.answerFile(w, r, version.Location, version.Document.Raw())
	}
	version, err := versions.LoadVersion(r.Context(), ident, name)
	if err != nil {
		return err
	}
	return s.answerFile(w, r, version.Location, version.Document.Raw())
}

// answerFile answers with the content of a metadata file.
func (s *server) answerFile(w http.ResponseWriter, r *http.Request, location string, content []byte) error {
	w.Header()["ETag"] = []string{`"` + location + `"`}
	return s.AnswerText(w, r, content)
}

// diffVersions answers with the differences between two versions.
func (s *server) diffVersions(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	ident, isView, err := versionedOf(q)
	if err != nil {
		return err
	}
	from, err := s.versionIn(q, "from", "now~1")
	if err != nil {
		return err
	}
	to, err := s.versionIn(q, "to", "now")
	if err != nil {
		return err
	}
	versions := s.config.Versions(web.CallerOf(r), nil, nil)
	if isView {
		found, err := versions.DiffViews(r.Context(), ident, from, to)
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, viewDifference{
			From: viewVersionOf(found.From), To: viewVersionOf(found.To), ViewDifference: found,
		})
	}
	found, err := versions.Diff(r.Context(), ident, from, to)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, difference{
		From: tableVersionOf(found.From), To: tableVersionOf(found.To), Difference: found,
	})
}

// difference is the answer of diffVersions for a table. Its JSON has the members of the embedded
// value at the top level.
type difference struct {
	From client.TableVersion `json:"from"`
	To   client.TableVersion `json:"to"`
	catalog.Difference
}

func tableVersionOf(version catalog.TableVersion) client.TableVersion {
	return client.TableVersion{MetadataLocation: version.Location, TimestampMS: version.Document.LastUpdatedMS()}
}

// viewDifference is the answer of diffVersions for a view.
type viewDifference struct {
	From client.TableVersion `json:"from"`
	To   client.TableVersion `json:"to"`
	catalog.ViewDifference
}

func viewVersionOf(version catalog.ViewVersion) client.TableVersion {
	return client.TableVersion{MetadataLocation: version.Location, TimestampMS: version.Document.LastUpdatedMS()}
}

// rollbackTable takes a table or view back to an earlier state.
func (s *server) rollbackTable(w http.ResponseWriter, r *http.Request) error {
	keyID, err := web.IdempotencyKey(r)
	if err != nil {
		return err
	}
	lease, err := leaseIn(r)
	if err != nil {
		return err
	}
	ident, isView, err := versionedOf(web.QueryOf(r))
	if err != nil {
		return err
	}
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	f, err := web.ParseFields(body, "rollback request")
	if err != nil {
		return err
	}
	f.Require("to")
	asked := catalog.RollbackRequest{
		From: f.Text("previous-metadata-location"), Ref: f.Text("ref"), Any: f.Boolean("any"),
		DryRun: f.Boolean("dry-run"),
	}
	for _, part := range f.Texts("parts") {
		switch part {
		case client.PartRefs:
		case client.PartAll:
			asked.All = true
		default:
			f.Fail("member %q has %q; the parts are %q and %q", "parts", part, client.PartRefs, client.PartAll)
		}
	}
	to := f.Text("to")
	if f.Failure != nil {
		return f.Failure
	}
	if asked.To, err = catalog.ParseVersion(to, s.config.Now()); err != nil {
		return err
	}
	var key *catalog.Key
	if keyID != "" {
		key = &catalog.Key{
			ID: keyID, Warehouse: ident.Warehouse, Method: r.Method,
			Path: web.EscapedPath(r.URL) + "?" + r.URL.RawQuery, Body: sha256.Sum256(body),
		}
	}
	versions := s.config.Versions(web.CallerOf(r), key, lease)
	if isView {
		done, err := versions.RollbackView(r.Context(), ident, asked)
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, client.RolledBack{
			Requirements: done.Requirements, Updates: done.Updates, Warnings: done.Warnings,
			MetadataLocation: done.View.Location, PreviousMetadataLocation: done.Was.Location,
			To: asked.To.Fixed(),
		})
	}
	done, err := versions.Rollback(r.Context(), ident, asked)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.RolledBack{
		Requirements: done.Requirements, Updates: done.Updates, Warnings: done.Warnings,
		MetadataLocation: done.Table.Location, PreviousMetadataLocation: done.Was.Location,
		To: asked.To.Fixed(),
	})
}

// leaseIn returns the lease named in a request, or nil if there is none.
func leaseIn(r *http.Request) (*catalog.Lease, error) {
	values := r.Header.Values("X-Moorage-Lease")
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 {
		return nil, moorage.Errorf(moorage.KindBadRequest, "There are %d X-Moorage-Lease headers", len(values))
	}
	lease, err := catalog.ParseLease(values[0])
	return &lease, err
}
