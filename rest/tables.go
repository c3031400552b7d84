package rest

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/metadata"
)

type identifierModel struct {
	Namespace moorage.Namespace `json:"namespace"`
	Name      string            `json:"name"`
}

type identifiersAnswer struct {
	Identifiers   []identifierModel `json:"identifiers"`
	NextPageToken *string           `json:"next-page-token"`
}

func (s *server) listTables(w http.ResponseWriter, r *http.Request) error {
	return s.listNames(w, r, "tables", s.catalog.ListTables)
}

// listNames answers a page of what list finds in the namespace of the path. A page token of one kind is none of another.
func (s *server) listNames(w http.ResponseWriter, r *http.Request, kind string,
	list func(ctx context.Context, warehouse string, ns moorage.Namespace, page catalog.Page) ([]string, string, error)) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	q, err := web.QueryOf(r)
	if err != nil {
		return err
	}
	pages, err := web.PagerOf(q, pageSizes, append([]string{kind, warehouse}, ns...)...)
	if err != nil {
		return err
	}
	names, next, err := list(r.Context(), warehouse, ns, pageOf(pages))
	if err != nil {
		return err
	}
	answer := identifiersAnswer{make([]identifierModel, len(names)), pages.Seal(next)}
	for i, name := range names {
		answer.Identifiers[i] = identifierModel{ns, name}
	}
	return s.AnswerJSON(w, r, answer)
}

// createTable makes a table, or, for stage-create, answers what would be made and stores
// nothing: the client commits it later, with assert-create.
func (s *server) createTable(r *http.Request, body []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return change{}, err
	}
	f, err := web.ParseFields(body, "create table request")
	if err != nil {
		return change{}, err
	}
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns, Name: nameIn(f)}
	f.Require("schema")
	request := catalog.CreateTableRequest{
		Schema:        f.Typed("schema", jsontext.Object).Bytes(),
		PartitionSpec: f.Typed("partition-spec", jsontext.Object).Bytes(),
		WriteOrder:    f.Typed("write-order", jsontext.Object).Bytes(),
		Location:      f.Text("location"),
		Properties:    f.TextMap("properties"),
		Stage:         f.Boolean("stage-create"),
	}
	return s.answeringTable(loadAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.CreateTable(ctx, ident, request)
	}), f.Failure
}

// tableExists answers 204 if the table is there.
func (s *server) tableExists(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	if err := s.catalog.TableExists(r.Context(), ident); err != nil {
		return err
	}
	return web.AnswerNothing(w)
}

// commitTable changes one table: the operation updateTable.
func (s *server) commitTable(r *http.Request, body []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return change{}, err
	}
	f, err := web.ParseFields(body, "commit request")
	if err != nil {
		return change{}, err
	}
	checkNamed(f, paramTable, ident)
	request, err := decodeCommit(f)
	return s.answeringTable(commitAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.Commit(ctx, ident, request)
	}), err
}

// decodeCommit reads a commit of a table. Both lists must be there, though they may be
// empty or null: a list that was misspelled must not pass for an empty one, because it may
// hold what the client relies on.
func decodeCommit(f *web.Fields) (request catalog.CommitRequest, err error) {
	for _, list := range []string{"requirements", "updates"} {
		if !f.Has(list) {
			f.Fail("member %q is missing", list)
		}
	}
	requirements, updates := f.Typed("requirements", jsontext.Array), f.Typed("updates", jsontext.Array)
	if f.Failure != nil {
		return request, f.Failure
	}
	if !requirements.IsZero() {
		if request.Requirements, err = metadata.DecodeRequirements(requirements); err != nil {
			return request, err
		}
	}
	if !updates.IsZero() {
		if request.Updates, err = metadata.DecodeUpdates(updates); err != nil {
			return request, err
		}
	}
	return request, nil
}

func (s *server) dropTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return change{}, err
	}
	q, err := web.QueryOf(r)
	if err != nil {
		return change{}, err
	}
	purge, err := q.Boolean("purgeRequested")
	return silently(func(ctx context.Context) error {
		return s.catalog.DropTable(ctx, ident, catalog.DropOptions{Purge: purge})
	}), err
}

func (s *server) renameTable(r *http.Request, body []byte) (change, error) {
	from, to, err := decodeRename(r, body, "rename table request")
	return silently(func(ctx context.Context) error { return s.catalog.RenameTable(ctx, from, to) }), err
}

// decodeRename reads a request to rename a table or view.
func decodeRename(r *http.Request, body []byte, what string) (from, to moorage.Identifier, err error) {
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return from, to, err
	}
	f, err := web.ParseFields(body, what)
	if err != nil {
		return from, to, err
	}
	from, to = identifierIn(f, "source", warehouse), identifierIn(f, "destination", warehouse)
	return from, to, f.Failure
}

func (s *server) registerTable(r *http.Request, body []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return change{}, err
	}
	f, err := web.ParseFields(body, "register table request")
	if err != nil {
		return change{}, err
	}
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns, Name: nameIn(f)}
	request := catalog.RegisterRequest{MetadataLocation: metadataLocationIn(f), Overwrite: f.Boolean("overwrite")}
	return s.answeringTable(loadAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.RegisterTable(ctx, ident, request)
	}), f.Failure
}

// unregisterTable takes a table out of the catalog, leaves its files alone and answers its last
// version.
func (s *server) unregisterTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	return s.answeringTable(lastAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.UnregisterTable(ctx, ident)
	}), err
}
