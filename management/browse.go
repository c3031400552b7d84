package management

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/catalog/browse"
	"moorage/internal/web"
	"moorage/management/client"
	"moorage/registry"
)

// Browse has the methods of browse.Browse.
type Browse interface {
	Object(ctx context.Context, warehouse string, path []string) (browse.Object, error)
	Objects(ctx context.Context, of browse.Listing, page moorage.Page) ([]browse.Row, string, error)
	Search(ctx context.Context, asked browse.Search) (rows []browse.Row, more bool, err error)
	Stats(ctx context.Context, warehouse string, maxAge time.Duration) (browse.Stats, error)
	Health(ctx context.Context, ident moorage.Identifier, deep bool) (browse.Health, error)
	Manifests(ctx context.Context, ident moorage.Identifier, asked browse.ManifestsRequest) (browse.ManifestList,
		error)
	Refusals(ctx context.Context, kind access.Kind, ident moorage.Identifier, limit int) ([]activity.Refusal, error)
}

// browseOperations returns the operations that show objects.
func (s *server) browseOperations() []operation {
	return []operation{
		{"loadObject", http.MethodGet, "/object", s.loadObject},
		{"listObjects", http.MethodGet, "/objects", s.listObjects},
		{"searchObjects", http.MethodGet, "/search", s.searchObjects},
		{"loadStats", http.MethodGet, "/warehouses/{name}/stats", s.loadStats},
		{"loadHealth", http.MethodGet, "/health", s.loadHealth},
		{"listManifests", http.MethodGet, "/manifests", s.listManifests},
	}
}

// browse returns the verbs that show objects, for the caller of r.
func (s *server) browse(r *http.Request) Browse { return s.config.Browse(web.CallerOf(r)) }

// rowOf converts a row of a list.
func rowOf(row browse.Row) client.Row {
	made := client.Row{
		Kind: row.Kind.String(), Warehouse: row.Ident.Warehouse, Namespace: append([]string{}, row.Ident.Namespace...),
		Name: row.Ident.Name,
	}
	if row.Kind == access.Namespace {
		last := len(made.Namespace) - 1
		made.Namespace, made.Name = made.Namespace[:last], made.Namespace[last]
	}
	if d := row.Details; d != nil {
		made.ID, made.UUID, made.Creator, made.Labelled = d.ID.String(), d.UUID, d.Creator, d.Labelled
		made.Protected, made.Mirror = d.Protected, d.Mirror
		if !d.Last.Change.IsZero() {
			made.Change, made.By = d.Last.Change.String(), d.Last.By
		}
		made.Summary = summaryIn(d.Last.Summary)
	}
	return made
}

// summaryIn returns the summary of a version, or nil.
func summaryIn(summary *registry.Summary) *client.ObjectSummary {
	if summary == nil {
		return nil
	}
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	made := &client.ObjectSummary{
		Format: summary.Format, Columns: known(summary.Columns), Snapshots: known(summary.Snapshots),
		Rows: known(summary.Rows), Bytes: known(summary.Bytes), Files: known(summary.Files),
		Deletes: known(summary.Deletes), Versions: known(summary.Versions), Operation: summary.Operation,
		Engine: summary.Engine, Comment: summary.Comment,
	}
	if summary.At > 0 {
		at := time.UnixMilli(summary.At).UTC()
		made.At = &at
	}
	return made
}

// levelsOf returns the levels in a parameter. It returns none if the parameter is missing or empty.
func levelsOf(q web.Query, name string) ([]string, error) {
	text, _, err := q.Text(name)
	if err != nil || text == "" {
		return nil, err
	}
	return strings.Split(text, moorage.LevelSeparator), nil
}

// flagOf returns the value of a boolean parameter, or false if it is missing.
func flagOf(q web.Query, name string) (bool, error) {
	text, given, err := q.Text(name)
	if err != nil || !given {
		return false, err
	}
	truth, err := strconv.ParseBool(text)
	if err != nil {
		return false, moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %q, want true or false", name,
			moorage.Cut(text, 50))
	}
	return truth, nil
}

// kindsOf returns the kinds in the parameter kind, which are separated by commas.
func kindsOf(q web.Query) (kinds []access.Kind, err error) {
	text, given, err := q.Text("kind")
	if err != nil || !given {
		return nil, err
	}
	for word := range strings.SplitSeq(text, ",") {
		switch word {
		case client.KindNamespace:
			kinds = append(kinds, access.Namespace)
		case client.KindTable:
			kinds = append(kinds, access.Table)
		case client.KindView:
			kinds = append(kinds, access.View)
		default:
			return nil, moorage.Errorf(moorage.KindBadRequest, "Unknown kind %q: it is namespace, table or view",
				moorage.Cut(word, 50))
		}
	}
	return kinds, nil
}

func (s *server) loadObject(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	warehouse, given, err := q.Text("warehouse")
	if err != nil {
		return err
	}
	if !given {
		return moorage.Errorf(moorage.KindBadRequest, "Name an object: the parameter warehouse is missing")
	}
	path, err := levelsOf(q, "path")
	if err != nil {
		return err
	}
	found, err := s.browse(r).Object(r.Context(), warehouse, path)
	if err != nil {
		return err
	}
	shown := client.ObjectDetails{
		Row: rowOf(found.Row), Owner: found.Owner, Location: found.Location, Properties: orEmpty(found.Properties),
		MetadataLocation: found.MetadataLocation,
	}
	if shown.Kind == client.KindTable || shown.Kind == client.KindView {
		labels := labelsOf(found.Labels)
		shown.Labels = &labels
		shown.Columns = each(found.Columns, func(column browse.Column) client.Column { return client.Column(column) })
	}
	return s.AnswerJSON(w, r, shown)
}

func (s *server) listObjects(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	var of browse.Listing
	var given bool
	var err error
	if of.Warehouse, given, err = q.Text("warehouse"); err != nil {
		return err
	}
	if !given {
		return moorage.Errorf(moorage.KindBadRequest,
			"Name a warehouse or a namespace: the parameter warehouse is missing")
	}
	if of.Namespace, err = levelsOf(q, "namespace"); err != nil {
		return err
	}
	if of.Recursive, err = flagOf(q, "recursive"); err != nil {
		return err
	}
	if of.Kinds, err = kindsOf(q); err != nil {
		return err
	}
	if of.Prefix, _, err = q.Text("prefix"); err != nil {
		return err
	}
	find := func(ctx context.Context, page moorage.Page) ([]client.Row, string, error) {
		rows, next, err := s.browse(r).Objects(ctx, of, page)
		return each(rows, rowOf), next, err
	}
	// The catalog binds a token to one container. The name of the list binds it to the other
	// parameters.
	name := strings.Join([]string{"objects", of.Warehouse, strings.Join(of.Namespace, moorage.LevelSeparator)}, "\x00")
	return list(s, name, pageSizes, find, func(found []client.Row, next *string) any {
		return client.ObjectsPage{Objects: found, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}

// Limits of a search.
const (
	searchLimitDefault, searchLimitMax = 50, 200
	searchBytesMax                     = 200
)

func (s *server) searchObjects(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	asked := browse.Search{Limit: searchLimitDefault}
	var err error
	if asked.Words, _, err = q.Text("q"); err != nil {
		return err
	}
	if len(asked.Words) > searchBytesMax {
		return moorage.Errorf(moorage.KindBadRequest, "The words have %d bytes, at most %d are possible",
			len(asked.Words), searchBytesMax)
	}
	if asked.Warehouse, _, err = q.Text("warehouse"); err != nil {
		return err
	}
	if asked.Kinds, err = kindsOf(q); err != nil {
		return err
	}
	if text, given, err := q.Text("limit"); err != nil {
		return err
	} else if given {
		asked.Limit, err = strconv.Atoi(text)
		if err != nil || asked.Limit < 1 || asked.Limit > searchLimitMax {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid limit: %q, want a number from 1 to %d",
				moorage.Cut(text, 50), searchLimitMax)
		}
	}
	rows, more, err := s.browse(r).Search(r.Context(), asked)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Found{Objects: each(rows, rowOf), More: more})
}
