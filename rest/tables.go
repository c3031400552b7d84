package rest

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
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
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	pages, err := pagerOf(q, append([]string{kind, warehouse}, ns...)...)
	if err != nil {
		return err
	}
	names, next, err := list(r.Context(), warehouse, ns, pages.page)
	if err != nil {
		return err
	}
	answer := identifiersAnswer{make([]identifierModel, len(names)), pages.seal(next)}
	for i, name := range names {
		answer.Identifiers[i] = identifierModel{ns, name}
	}
	return s.answerJSON(w, r, answer)
}

// createTable makes a table, or, for stage-create, answers what would be made and stores
// nothing: the client commits it later, with assert-create.
func (s *server) createTable(r *http.Request, body []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "create table request")
	if err != nil {
		return change{}, err
	}
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns, Name: f.name()}
	f.require("schema")
	request := catalog.CreateTableRequest{
		Schema:        f.typed("schema", jsontext.Object).Bytes(),
		PartitionSpec: f.typed("partition-spec", jsontext.Object).Bytes(),
		WriteOrder:    f.typed("write-order", jsontext.Object).Bytes(),
		Location:      f.text("location"),
		Properties:    f.textMap("properties"),
		Stage:         f.boolean("stage-create"),
	}
	return s.answeringTable(loadAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.CreateTable(ctx, ident, request)
	}), f.failure
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
	return answerNothing(w)
}

// commitTable changes one table: the operation updateTable.
func (s *server) commitTable(r *http.Request, body []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "commit request")
	if err != nil {
		return change{}, err
	}
	f.mustName(paramTable, ident)
	request, err := decodeCommit(f)
	return s.answeringTable(commitAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.Commit(ctx, ident, request)
	}), err
}

// decodeCommit reads a commit of a table. Both lists must be there, though they may be
// empty or null: a list that was misspelled must not pass for an empty one, because it may
// hold what the client relies on.
func decodeCommit(f *fields) (request catalog.CommitRequest, err error) {
	for _, list := range []string{"requirements", "updates"} {
		if !f.has(list) {
			f.fail("member %q is missing", list)
		}
	}
	requirements, updates := f.typed("requirements", jsontext.Array), f.typed("updates", jsontext.Array)
	if f.failure != nil {
		return request, f.failure
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
	q, err := queryOf(r)
	if err != nil {
		return change{}, err
	}
	purge, err := q.boolean("purgeRequested")
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
	f, err := parseFields(body, what)
	if err != nil {
		return from, to, err
	}
	from, to = f.identifier("source", warehouse), f.identifier("destination", warehouse)
	return from, to, f.failure
}

func (s *server) registerTable(r *http.Request, body []byte) (change, error) {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "register table request")
	if err != nil {
		return change{}, err
	}
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns, Name: f.name()}
	request := catalog.RegisterRequest{MetadataLocation: f.metadataLocation(), Overwrite: f.boolean("overwrite")}
	return s.answeringTable(loadAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.RegisterTable(ctx, ident, request)
	}), f.failure
}

// unregisterTable takes a table out of the catalog, leaves its files alone and answers its last
// version.
func (s *server) unregisterTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	return s.answeringTable(lastAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.UnregisterTable(ctx, ident)
	}), err
}
