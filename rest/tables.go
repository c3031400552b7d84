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

// list returns a handler that answers with a page of the names that find returns for the namespace
// in the path. kind identifies the list: a page token of one kind is not valid for another kind.
func (s *server) list(kind string,
	find func(c catalog.Verbs, ctx context.Context, warehouse string, ns moorage.Namespace, page moorage.Page) (
		[]string, string, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		warehouse, ns, err := pathNamespace(r)
		if err != nil {
			return err
		}
		pages, err := web.PagerOf(r, pageSizes, append([]string{kind, warehouse}, ns...)...)
		if err != nil {
			return err
		}
		names, next, err := find(s.catalogFor(r), r.Context(), warehouse, ns, pageOf(pages))
		if err != nil {
			return err
		}
		return s.AnswerText(w, r, identifiersJSON(ns, names, pages.Seal(next)))
	}
}

// identifiersJSON returns the response of a list: the names in ns, and the token of the next page
// if there is one. A list may have many thousand names, so it is built without reflection, and the
// namespace is quoted once. Source: REST specification, ListTablesResponse.
func identifiersJSON(ns moorage.Namespace, names []string, nextPageToken *string) []byte {
	const before, between, after = `{"namespace":[`, `],"name":`, `},`
	const head, tail = `{"identifiers":[`, `],"next-page-token":`
	levels, token := []byte(nil), []byte("null")
	for i, level := range ns {
		if i > 0 {
			levels = append(levels, ',')
		}
		levels = jsontext.AppendQuoted(levels, level)
	}
	if nextPageToken != nil {
		token = jsontext.AppendQuoted(nil, *nextPageToken)
	}
	bytes := len(head) + len(tail) + len(token) + len(`}`)
	for _, name := range names { // add the lengths of the names, without escapes
		bytes += len(before) + len(levels) + len(between) + len(name) + len(`""`) + len(after)
	}
	text := append(make([]byte, 0, bytes), head...)
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, before...)
		text = append(text, levels...)
		text = append(text, between...)
		text = append(jsontext.AppendQuoted(text, name), '}')
	}
	text = append(text, tail...)
	return append(append(text, token...), '}')
}

// createTable creates a table. For stage-create it answers with the table that would be created and
// stores nothing. The client commits the table later, with assert-create.
func (s *server) createTable(r *http.Request, body []byte) (change, error) {
	ident, f, err := readNamed(r, body, "create table request")
	if err != nil {
		return nil, err
	}
	f.Require("schema")
	request := catalog.CreateTableRequest{
		Schema:        f.Typed("schema", jsontext.Object).Bytes(),
		PartitionSpec: f.Typed("partition-spec", jsontext.Object).Bytes(),
		WriteOrder:    f.Typed("write-order", jsontext.Object).Bytes(),
		Location:      f.Text("location"),
		Properties:    f.TextMap("properties"),
		Stage:         f.Boolean("stage-create"),
	}
	return s.answeringTable(loadAnswer, func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.CreateTable(ctx, ident, request)
	}), f.Failure
}

// exists returns a handler that answers 204 if find returns no error for the table or view in the
// path parameter param.
func (s *server) exists(param string,
	find func(c catalog.Verbs, ctx context.Context, ident moorage.Identifier) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		ident, err := pathIdentifier(r, param)
		if err != nil {
			return err
		}
		if err := find(s.catalogFor(r), r.Context(), ident); err != nil {
			return err
		}
		return web.AnswerNothing(w)
	}
}

// commitTable changes one table. It is the operation updateTable.
func (s *server) commitTable(r *http.Request, body []byte) (change, error) {
	ident, f, err := readCommit(r, body, paramTable, "commit request")
	if err != nil {
		return nil, err
	}
	request, err := decodeCommit(f)
	if err == nil {
		request.Rebase, err = rebaseChoice(r)
	}
	return s.answeringTable(commitAnswer, func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.Commit(ctx, ident, request)
	}), err
}

// rebaseChoice reads the header with which a client allows or forbids a rebase of its commit. An
// empty or repeated header is an error.
func rebaseChoice(r *http.Request) (catalog.RebaseChoice, error) {
	values := r.Header.Values(catalog.RebaseHeader)
	switch {
	case len(values) == 0:
		return catalog.RebaseUnset, nil
	case len(values) > 1 || values[0] == "":
		return catalog.RebaseOff, moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: not on or off", catalog.RebaseHeader)
	}
	return catalog.ParseRebaseChoice(catalog.RebaseHeader, values[0])
}

// decodeCommit reads a commit to a table. Both lists are required, though they may be empty or
// null. A list whose name is misspelled must not count as empty, because it may contain conditions
// on which the client relies.
func decodeCommit(f *web.Fields) (request catalog.CommitRequest, err error) {
	for _, list := range []string{"requirements", "updates"} {
		if !f.Has(list) {
			f.Fail("member %q is missing", list)
		}
	}
	request.Requirements, request.Updates, err = decodeLists(f, metadata.DecodeRequirements, metadata.DecodeUpdates)
	return request, err
}

// decodeLists reads the two lists of a commit. A list that is missing or null is empty.
func decodeLists[R, U any](f *web.Fields, decodeRequirements func(jsontext.Checked) (R, error),
	decodeUpdates func(jsontext.Checked) (U, error)) (requirements R, updates U, err error) {
	required, updating := f.Typed("requirements", jsontext.Array), f.Typed("updates", jsontext.Array)
	if err = f.Failure; err == nil && !required.IsZero() {
		requirements, err = decodeRequirements(required)
	}
	if err == nil && !updating.IsZero() {
		updates, err = decodeUpdates(updating)
	}
	return requirements, updates, err
}

func (s *server) dropTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return nil, err
	}
	purge, err := web.QueryOf(r).Boolean("purgeRequested")
	return silently(func(ctx context.Context, c catalog.Verbs) error {
		return c.DropTable(ctx, ident, catalog.DropOptions{Purge: purge})
	}), err
}

// rename reads a request to rename a table or view.
func rename(what string, apply func(c catalog.Verbs, ctx context.Context, from, to moorage.Identifier) error) mutation {
	return func(r *http.Request, body []byte) (change, error) {
		warehouse, err := pathWarehouse(r)
		if err != nil {
			return nil, err
		}
		f, err := web.ParseFields(body, what)
		if err != nil {
			return nil, err
		}
		from, to := identifierIn(f, "source", warehouse), identifierIn(f, "destination", warehouse)
		return silently(func(ctx context.Context, c catalog.Verbs) error { return apply(c, ctx, from, to) }), f.Failure
	}
}

func (s *server) registerTable(r *http.Request, body []byte) (change, error) {
	ident, f, err := readNamed(r, body, "register table request")
	if err != nil {
		return nil, err
	}
	request := catalog.RegisterRequest{MetadataLocation: metadataLocationIn(f), Overwrite: f.Boolean("overwrite")}
	return s.answeringTable(loadAnswer, func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.RegisterTable(ctx, ident, request)
	}), f.Failure
}

// unregisterTable removes a table from the catalog, keeps its files and answers with its last
// version.
func (s *server) unregisterTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r, paramTable)
	return s.answeringTable(lastAnswer, func(ctx context.Context, c catalog.Verbs) (*catalog.Table, error) {
		return c.UnregisterTable(ctx, ident)
	}), err
}
