package catalog

import (
	"context"
	"errors"
	"time"

	"moorage"
	"moorage/catalog/activity"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/ledger"
)

// LoadTable returns the current version of a table. It takes no locks. If the table was loaded
// before, it reads the store only once.
//
// through lists the views through which an engine reached the table, outermost first. There may be
// at most vending.ViewsMax. They are ignored unless the engine is trusted. For a trusted engine,
// read is required on each view, and behind a definer view the privileges of the view's owner
// count.
//
// Errors: KindNoSuchTable, also if the namespace or a view is missing; KindNotFound if the metadata
// file is missing; KindInternal if the metadata file cannot be read; KindBadRequest if through is
// invalid. Source: REST specification, loadTable.
func (c *Catalog) LoadTable(ctx context.Context, ident moorage.Identifier, through ...moorage.Identifier) (
	*Table, error) {
	loaded, by, err := c.load(ctx, gate.LoadTable, ident, through)
	if err != nil {
		return nil, moorage.Annotate("catalog.LoadTable", ident.String(), err)
	}
	table := tableOf(loaded)
	table.through = by.Through
	table.Labels, err = c.labels.textOf(ctx, loaded.Pointer, loaded.Labels)
	return table, moorage.Annotate("catalog.LoadTable", ident.String(), err)
}

// TableExists returns nil if the table exists, and otherwise the error that LoadTable would return.
// It does not read the metadata file.
func (c *Catalog) TableExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.resolve(ctx, gate.TableExists, ident)
	return moorage.Annotate("catalog.TableExists", ident.String(), err)
}

// ReportMetrics accepts a client's metrics report about a table. It does not store the report, and
// the table need not exist.
//
// Errors: the errors of the gate. Source: REST specification, reportMetrics.
func (c *Catalog) ReportMetrics(ctx context.Context, ident moorage.Identifier) error {
	request := gate.Request{Caller: c.caller, Verb: gate.ReportMetrics, On: []moorage.Identifier{ident}}
	err := gate.Pass(ctx, c.gate, request, func() error { return nil })
	return moorage.Annotate("catalog.ReportMetrics", ident.String(), err)
}

// asker returns the Asker for the caller of c and v.
func (c *Catalog) asker(v gate.Verb) directory.Asker {
	return directory.Asker{Caller: c.caller, Verb: v}
}

// resolve finds the object of v, a verb that reads. The parameter on is the object's name. through
// has the same meaning as in LoadTable.
func (c *Catalog) resolve(ctx context.Context, v gate.Verb, on moorage.Identifier,
	through ...moorage.Identifier) (directory.Resolved, error) {
	views, err := c.vending.Views(through)
	if err != nil {
		return directory.Resolved{}, err
	}
	return c.directory.Resolve(ctx, c.caller, v, on, views)
}

// load returns the present version of the table or view called ident. It also returns the asker,
// which includes the views in through.
func (c *Catalog) load(ctx context.Context, v gate.Verb, ident moorage.Identifier, through []moorage.Identifier) (
	*commit.Version, directory.Asker, error) {
	measured := c.activity.Loads()
	var began time.Time
	if measured {
		began = c.now()
	}
	resolved, err := c.resolve(ctx, v, ident, through...)
	if err != nil {
		return nil, resolved.By, err
	}
	found := resolved.Found
	document, err := c.documents.Current(ctx, found)
	if errors.Is(err, ledger.ErrRetry) { // the file was deleted after the pointer was read
		asked := v.Needs(gate.OfObject, gate.Always)
		err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
			found, err = c.directory.FindFor(ctx, resolved.By, asked, directory.KindOf(found.Pointer), ident)
			if err == nil {
				document, err = c.documents.Current(ctx, found)
			}
			return err
		})
	}
	if err != nil {
		return nil, resolved.By, err
	}
	if measured {
		now := c.now()
		c.activity.Loaded(now, activity.Table{ID: found.Pointer.ID, Ident: ident}, now.Sub(began))
	}
	return commit.VersionOf(found, ident, document), resolved.By, nil
}

// LoadWarehouse returns the warehouse called name, or KindNoSuchWarehouse.
func (c *Catalog) LoadWarehouse(ctx context.Context, name string) (warehouses.Warehouse, error) {
	const op = "catalog.LoadWarehouse"
	if err := moorage.ValidateWarehouse(name); err != nil {
		return warehouses.Warehouse{}, moorage.Annotate(op, name, err)
	}
	resolved, err := c.resolve(ctx, gate.LoadWarehouse, moorage.Identifier{Warehouse: name})
	if err != nil {
		return warehouses.Warehouse{}, moorage.Annotate(op, name, err)
	}
	return warehouses.Of(name, resolved.Path.Warehouse), nil
}

// ClientConfig returns the configuration that an engine needs to reach the files of the warehouse
// called name, in the form of Table.Config. Callers must not change it.
//
// Errors: KindNoSuchWarehouse.
func (c *Catalog) ClientConfig(ctx context.Context, name string) (map[string]string, error) {
	resolved, err := c.resolve(ctx, gate.LoadWarehouse, moorage.Identifier{Warehouse: name})
	if err != nil {
		return nil, moorage.Annotate("catalog.ClientConfig", name, err)
	}
	return clientConfig(resolved.Path.Storage), nil
}
