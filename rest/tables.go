package rest

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
)

type identifierModel struct {
	Namespace moorage.Namespace `json:"namespace"`
	Name      string            `json:"name"`
}

type tablesAnswer struct {
	Identifiers   []identifierModel `json:"identifiers"`
	NextPageToken *string           `json:"next-page-token"`
}

func (s *server) listTables(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := pathNamespace(r)
	if err != nil {
		return err
	}
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	pages, err := pagerOf(q, append([]string{"tables", warehouse}, ns...)...)
	if err != nil {
		return err
	}
	names, next, err := s.catalog.ListTables(r.Context(), warehouse, ns, pages.page)
	if err != nil {
		return err
	}
	answer := tablesAnswer{make([]identifierModel, len(names)), pages.seal(next)}
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
		Schema:        f.raw("schema", '{'),
		PartitionSpec: f.raw("partition-spec", '{'),
		WriteOrder:    f.raw("write-order", '{'),
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
	ident, err := pathIdentifier(r)
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
	ident, err := pathIdentifier(r)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "commit request")
	if err != nil {
		return change{}, err
	}
	request, err := decodeCommit(f, ident)
	return s.answeringTable(commitAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.Commit(ctx, ident, request)
	}), err
}

// decodeCommit reads a commit of the table ident. Both lists must be there, though they may be
// empty or null: a list that was misspelled must not pass for an empty one, because it may
// hold what the client relies on.
func decodeCommit(f *fields, ident moorage.Identifier) (request catalog.CommitRequest, err error) {
	for _, list := range []string{"requirements", "updates"} {
		if !f.has(list) {
			f.fail("member %q is missing", list)
		}
	}
	if f.get("identifier") != nil {
		named := f.identifier("identifier", ident.Warehouse)
		if f.failure == nil && !named.Equal(ident) {
			f.fail("it names table %s, but the path names %s", named, ident)
		}
	}
	requirements, updates := f.raw("requirements", '['), f.raw("updates", '[')
	if f.failure != nil {
		return request, f.failure
	}
	if requirements != nil {
		if request.Requirements, err = metadata.DecodeRequirements(requirements); err != nil {
			return request, err
		}
	}
	if updates != nil {
		if request.Updates, err = metadata.DecodeUpdates(updates); err != nil {
			return request, err
		}
	}
	return request, nil
}

func (s *server) dropTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r)
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
	warehouse, err := pathWarehouse(r)
	if err != nil {
		return change{}, err
	}
	f, err := parseFields(body, "rename table request")
	if err != nil {
		return change{}, err
	}
	from, to := f.identifier("source", warehouse), f.identifier("destination", warehouse)
	return silently(func(ctx context.Context) error { return s.catalog.RenameTable(ctx, from, to) }), f.failure
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
	f.require("metadata-location")
	request := catalog.RegisterRequest{MetadataLocation: f.text("metadata-location"), Overwrite: f.boolean("overwrite")}
	if f.failure == nil && request.MetadataLocation == "" {
		f.fail("member %q must not be empty", "metadata-location")
	}
	return s.answeringTable(loadAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.RegisterTable(ctx, ident, request)
	}), f.failure
}

// unregisterTable takes a table out of the catalog, leaves its files alone and answers its last
// version.
func (s *server) unregisterTable(r *http.Request, _ []byte) (change, error) {
	ident, err := pathIdentifier(r)
	return s.answeringTable(lastAnswer, func(ctx context.Context) (*catalog.Table, error) {
		return s.catalog.UnregisterTable(ctx, ident)
	}), err
}

// Types of reports that clients send.
const (
	reportScan   = "scan-report"
	reportCommit = "commit-report"
)

// reportMetrics takes note that a client sent a report. Whether the table exists is not looked
// at: clients send reports after every scan and ignore the answer.
func (s *server) reportMetrics(w http.ResponseWriter, r *http.Request) error {
	if _, err := pathIdentifier(r); err != nil {
		return err
	}
	f, err := s.readFields(w, r, "metrics report")
	if err != nil {
		return err
	}
	f.require("report-type")
	kind := f.text("report-type")
	if f.failure == nil && kind != reportScan && kind != reportCommit {
		f.fail("unknown report-type %q", kind)
	}
	if f.failure != nil {
		return f.failure
	}
	s.metrics.reports.WithLabelValues(kind).Inc()
	return answerNothing(w)
}
