package catalog

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/verb"
	"moorage/ledger"
)

// LoadTable returns the current version of a table. It takes no locks and, for a table
// loaded before, makes one read of the store.
//
// Errors: KindNoSuchTable, also if the namespace is missing; KindNotFound if the metadata
// file is missing, KindInternal if it cannot be read. Source: REST specification, loadTable.
func (c *Catalog) LoadTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	loaded, err := c.load(ctx, verb.LoadTable, ident)
	return tableOf(loaded), moorage.Annotate("catalog.LoadTable", ident.String(), err)
}

// TableExists returns nil if there is such a table, else the error that LoadTable returns. It does
// not look at the metadata file.
func (c *Catalog) TableExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.resolve(ctx, verb.TableExists, ident)
	return moorage.Annotate("catalog.TableExists", ident.String(), err)
}

// ReportMetrics takes a report of a client about a table, which need not exist. It keeps nothing.
//
// Errors: those of the gate. Source: REST specification, reportMetrics.
func (c *Catalog) ReportMetrics(ctx context.Context, ident moorage.Identifier) error {
	request := verb.Request{Caller: c.caller, Verb: verb.ReportMetrics, On: []moorage.Identifier{ident}}
	err := verb.Pass(ctx, c.gate, request, func() error { return nil })
	return moorage.Annotate("catalog.ReportMetrics", ident.String(), err)
}

// askerOf returns the caller of c, who asks for v.
func askerOf(c *Catalog, v verb.Verb) directory.Asker {
	return directory.Asker{Caller: c.caller, Verb: v}
}

// resolve finds what v, a verb that reads, is used on.
func (c *Catalog) resolve(ctx context.Context, v verb.Verb, on moorage.Identifier) (directory.Resolved, error) {
	return c.planner.directory.Resolve(ctx, c.caller, v, on)
}

// load returns the version that the pointer called ident names.
func (c *Catalog) load(ctx context.Context, v verb.Verb, ident moorage.Identifier) (*commit.Version, error) {
	resolved, err := c.resolve(ctx, v, ident)
	if err != nil {
		return nil, err
	}
	found := resolved.Found
	document, err := c.planner.documents.Current(ctx, found)
	if errors.Is(err, ledger.ErrRetry) { // trimmed since the pointer was read
		row, _ := v.Row()
		asked, _ := row.Needs(verb.OfObject)
		err = c.planner.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
			found, err = c.planner.directory.FindFor(ctx, askerOf(c, v), asked, directory.KindOf(found.Pointer), ident)
			if err == nil {
				document, err = c.planner.documents.Current(ctx, found)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return commit.VersionOf(found, ident, document), nil
}
