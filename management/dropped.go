package management

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/management/client"
	"moorage/registry"
)

// Dropped has the methods of catalog.Dropped.
type Dropped interface {
	List(ctx context.Context, of catalog.DroppedListing, page moorage.Page) ([]catalog.DroppedRow, string, error)
	Undrop(ctx context.Context, asked catalog.UndropRequest) (catalog.Undropped, error)
	Purge(ctx context.Context, name catalog.DroppedName) error
	Forget(ctx context.Context, name catalog.DroppedName) error
}

// droppedOperations returns the operations on dropped objects.
func (s *server) droppedOperations() []operation {
	return []operation{
		{"listDropped", http.MethodGet, "/dropped", s.listDropped},
		{"undrop", http.MethodPost, "/undrop", s.undrop},
		{"purgeDropped", http.MethodPost, "/dropped/{id}/purge", s.endDropped(Dropped.Purge)},
		{"forgetDropped", http.MethodPost, "/dropped/{id}/forget", s.endDropped(Dropped.Forget)},
	}
}

// listDropped answers with a page of dropped objects.
func (s *server) listDropped(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	of, err := droppedListingIn(q)
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page moorage.Page) ([]client.Dropped, string, error) {
		rows, next, err := s.config.Dropped(web.CallerOf(r), nil).List(ctx, of, page)
		return each(rows, droppedOf), next, err
	}
	name := []string{"dropped", of.Warehouse, strings.Join(of.Namespace, moorage.LevelSeparator), of.Name}
	if of.Recursive {
		name = append(name, "recursive")
	}
	if !of.ID.IsZero() {
		name = append(name, of.ID.String())
	}
	return list(s, strings.Join(name, "\x00"), pageSizes, find, func(found []client.Dropped, next *string) any {
		return client.DroppedPage{Dropped: found, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}

// droppedListingIn returns the selection of dropped objects in the query parameters.
func droppedListingIn(q web.Query) (of catalog.DroppedListing, err error) {
	var given bool
	if of.Warehouse, given, err = q.Text("warehouse"); err != nil {
		return of, err
	}
	if !given {
		return of, moorage.Errorf(moorage.KindBadRequest, "Name a warehouse: the parameter warehouse is missing")
	}
	if of.Namespace, err = levelsOf(q, "namespace"); err != nil {
		return of, err
	}
	if of.Name, _, err = q.Text("name"); err != nil {
		return of, err
	}
	if of.Recursive, err = flagOf(q, "recursive"); err != nil {
		return of, err
	}
	id, given, err := q.Text("id")
	if err == nil && given && of.ID.UnmarshalText([]byte(id)) != nil {
		err = moorage.Errorf(moorage.KindBadRequest, "Invalid id: %s", moorage.Cut(id, moorage.ShownBytesMax))
	}
	if err != nil {
		return of, err
	}
	of.Ended, err = flagOf(q, "ended")
	return of, err
}

// droppedOf converts a row of the list of dropped objects.
func droppedOf(row catalog.DroppedRow) client.Dropped {
	made := client.Dropped{
		ID: row.ID.String(), Kind: row.Kind, Warehouse: row.Ident.Warehouse,
		Namespace: append([]string{}, row.Ident.Namespace...), Name: row.Ident.Name, UUID: row.UUID,
		State: row.State.String(), At: row.At.UTC(), By: moorage.NameOf(row.By), Purge: row.Purge,
		MetadataLocation: row.MetadataLocation, Summary: summaryIn(row.Summary), Undrop: row.Undrop,
		EndsAt: timeOrNil(row.EndsAt), Ended: timeOrNil(row.Ended), EndedBy: moorage.NameOf(row.EndedBy),
	}
	if row.Kind == registry.ItemNamespace {
		last := len(made.Namespace) - 1
		made.Namespace, made.Name = made.Namespace[:last], made.Namespace[last]
	}
	if !row.Change.IsZero() {
		made.Change = row.Change.String()
	}
	return made
}

func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// undrop brings a dropped table or view back.
func (s *server) undrop(w http.ResponseWriter, r *http.Request) error {
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	asked, err := undropIn(body)
	if err != nil {
		return err
	}
	key, err := catalogKey(r, asked.Ident.Warehouse, body)
	if err != nil {
		return err
	}
	done, err := s.config.Dropped(web.CallerOf(r), key).Undrop(context.WithoutCancel(r.Context()), asked)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Undropped{
		Kind: done.Kind.String(), Warehouse: done.Ident.Warehouse, Namespace: done.Ident.Namespace,
		Name: done.Ident.Name, ID: done.ID.String(), UUID: done.UUID, MetadataLocation: done.MetadataLocation,
		Summary: summaryIn(done.Summary), Warnings: append([]string{}, done.Warnings...),
	})
}

// undropIn parses the body of a request for an undrop.
func undropIn(body []byte) (asked catalog.UndropRequest, err error) {
	f, err := web.ParseFields(body, "undrop request")
	if err != nil {
		return asked, err
	}
	if id := f.Text("id"); id != "" && asked.ID.UnmarshalText([]byte(id)) != nil {
		f.Fail("member %q is not an id: %s", "id", moorage.Cut(id, moorage.ShownBytesMax))
	}
	asked.Ident = moorage.Identifier{
		Warehouse: f.Text("warehouse"), Namespace: f.Texts("namespace"), Name: f.Text("name"),
	}
	byName := asked.Ident.Warehouse != "" && len(asked.Ident.Namespace) > 0 && asked.Ident.Name != ""
	if asked.ID.IsZero() && !byName {
		f.Fail("it must name a dropped object: by id, or by warehouse, namespace and name")
	}
	switch kind := f.Text("kind"); kind {
	case "":
	case client.KindTable:
		asked.Kind = access.Table
	case client.KindView:
		asked.Kind = access.View
	default:
		f.Fail("member %q is %q; it is %s or %s", "kind", moorage.Cut(kind, moorage.ShownBytesMax), client.KindTable,
			client.KindView)
	}
	asked.Replace, asked.MakeNamespace = f.Boolean("replace"), f.Boolean("make-namespace")
	if value := f.Typed("as", jsontext.Object); !value.IsZero() {
		inner := f.Within(value, "as", "")
		inner.Require("namespace")
		inner.Require("name")
		asked.As = &moorage.Identifier{
			Warehouse: asked.Ident.Warehouse,
			Namespace: slices.Clone(inner.Texts("namespace")), Name: inner.Text("name"),
		}
		f.Keep(inner.Failure)
	}
	return asked, f.Failure
}

// endDropped returns the handler of a change that ends a dropped object before its time.
func (s *server) endDropped(end func(Dropped, context.Context, catalog.DroppedName) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		text, err := web.PathParam(r, "id")
		if err != nil {
			return err
		}
		var name catalog.DroppedName
		if err := name.ID.UnmarshalText([]byte(text)); err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid id: %s", moorage.Cut(text, moorage.ShownBytesMax))
		}
		body, err := s.ReadBody(w, r)
		if err != nil {
			return err
		}
		key, err := catalogKey(r, "", body)
		if err != nil {
			return err
		}
		if err := end(s.config.Dropped(web.CallerOf(r), key), context.WithoutCancel(r.Context()), name); err != nil {
			return err
		}
		return s.AnswerJSON(w, r, client.Done{})
	}
}

// tellDropped extends the error for a table or view that does not exist. If the caller may know, it
// adds when the object was dropped, and how it can come back. The query parameters of r name the
// object.
func (s *server) tellDropped(r *http.Request, failure error) error {
	ident, kind, named := droppedNamed(web.QueryOf(r))
	if failure == nil || !named || s.config.Dropped == nil {
		return failure
	}
	switch missing := moorage.KindOf(failure); {
	case missing == moorage.KindNoSuchTable, missing == moorage.KindNoSuchView:
	case missing == moorage.KindNotFound && kind == "": // the object may be of any kind
	default:
		return failure
	}
	of := catalog.DroppedListing{Warehouse: ident.Warehouse, Namespace: ident.Namespace, Name: ident.Name}
	rows, _, err := s.config.Dropped(web.CallerOf(r), nil).List(r.Context(), of, moorage.Page{Limit: 1})
	if err != nil || len(rows) == 0 || kind != "" && rows[0].Kind != kind {
		return failure
	}
	text := fmt.Sprintf("%s. It was dropped at %s", moorage.MessageOf(failure), rows[0].At.UTC().Format(time.RFC3339))
	if by := moorage.NameOf(rows[0].By); by != "" {
		text += " by " + by
	}
	if rows[0].Undrop == catalog.UndropYes {
		text += ": moorage undrop " + moorage.ShellWord(ident.PersonName())
	}
	return &moorage.Error{Kind: moorage.KindOf(failure), Message: text, Err: failure, Hidden: moorage.IsHidden(failure)}
}

// droppedNamed returns the table or view named in the query parameters: by a path, or by a
// namespace and a name. kind is empty for a path, which can name an object of any kind.
func droppedNamed(q web.Query) (ident moorage.Identifier, kind string, named bool) {
	object, unnamed, err := objectNamed(q)
	if unnamed == nil && err == nil && object.Table+object.View != "" {
		if kind = registry.ItemTable; object.View != "" {
			kind = registry.ItemView
		}
		return moorage.Identifier{
			Warehouse: object.Warehouse, Namespace: object.Namespace, Name: object.Table + object.View,
		}, kind, true
	}
	warehouse, _, _ := q.Text("warehouse")
	path, err := levelsOf(q, "path")
	last := len(path) - 1
	if err != nil || last < 1 {
		return ident, "", false
	}
	return moorage.Identifier{Warehouse: warehouse, Namespace: path[:last], Name: path[last]}, "", true
}
